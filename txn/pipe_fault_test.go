package txn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Every single fault of every request that a pipe sends: the output is what it is without.
func TestPipeRidesOutSingleFaults(t *testing.T) {
	keys := []wire.Key{wire.KeyProduce, wire.KeyEndTxn, wire.KeyTxnOffsetCommit, wire.KeyAddOffsetsToTxn, wire.KeyAddPartitionsToTxn, wire.KeyInitProducerId,
		wire.KeyFetch, wire.KeyOffsetFetch, wire.KeyHeartbeat, wire.KeyFindCoordinator}
	ways := map[string]func(fault.Rule) fault.Rule{
		"connection lost": fault.Rule.DropConnection,
		"answer lost":     fault.Rule.LoseResponse,
		"moved":           func(r fault.Rule) fault.Rule { return r.Error(errcode.NotCoordinator) },
		"late":            func(r fault.Rule) fault.Rule { return r.Late(2 * time.Second) },
	}
	for _, level := range levels {
		for name, way := range ways {
			for _, nth := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("transaction.version %d, %s, %d", level, name, nth), func(t *testing.T) {
					inPlant(t, level, 2, func(t *testing.T, p *plant) {
						w := p.start("a", "classic", nil)
						for i, key := range keys {
							if name == "moved" && (key == wire.KeyProduce || key == wire.KeyFetch || key == wire.KeyFindCoordinator) {
								continue
							}
							p.write(20)
							in := p.k.Inject(way(fault.On(key).Nth(nth)))
							if i%2 == 0 {
								time.Sleep(150 * time.Millisecond)
							}
							p.write(20)
							p.await(p.wrote)
							in.Remove()
						}
						p.once()
						w.stop(t)
					})
				})
			}
		}
	}
}

// Errors that doom a transaction: it is aborted, done again, and nobody sees it twice.
func TestPipeAbortsAndGoesOn(t *testing.T) {
	for _, c := range []struct {
		key  wire.Key
		code errcode.Code
	}{
		{wire.KeyTxnOffsetCommit, errcode.IllegalGeneration}, {wire.KeyTxnOffsetCommit, errcode.UnknownMemberId}, {wire.KeyProduce, errcode.OutOfOrderSequenceNumber},
		{wire.KeyProduce, errcode.UnknownProducerId}, {wire.KeyEndTxn, errcode.InvalidTxnState},
	} {
		t.Run(fmt.Sprintf("%s %s", c.key, c.code.Name()), func(t *testing.T) {
			inPlant(t, 2, 2, func(t *testing.T, p *plant) {
				p.write(10)
				w := p.start("a", "classic", nil)
				p.await(10)
				p.k.Inject(fault.On(c.key).Error(c.code).Times(4))
				p.write(10)
				for restarted := true; restarted; {
					select {
					case <-w.ended:
						require.Equal(t, txn.Fenced, txn.Class(w.err), "%v", w.err) // the session cannot go on with it, another one can
						w.close(t)
						w = p.start("a", "classic", nil)
					case <-time.After(20 * time.Second):
						restarted = false
					}
				}
				p.once()
				time.Sleep(time.Second) // the pipe hears later than we do that its last commit has come through
				commits := w.committed()
				time.Sleep(10 * time.Second)
				w.stop(t)
				require.Equal(t, commits, w.committed(), "nothing to commit, nothing committed")
			})
		})
	}
}

// Members come and go while three pipes work; each gives up what it has when its transaction is committed.
func TestPipesShareAndRebalance(t *testing.T) {
	everyWay(t, func(t *testing.T, level int16, protocol string) {
		inPlant(t, level, 6, func(t *testing.T, p *plant) {
			workers := []*worker{p.start("a", protocol, nil), p.start("b", protocol, nil)}
			rng := rand.New(rand.NewPCG(uint64(level), 7))
			for i := range 20 {
				p.write(100)
				time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
				switch i % 4 {
				case 0:
					workers = append(workers, p.start(fmt.Sprint("c", i), protocol, nil))
				case 2:
					n := rng.IntN(len(workers))
					workers[n].stop(t)
					require.ErrorIs(t, workers[n].err, context.Canceled)
					workers = append(workers[:n], workers[n+1:]...)
				}
			}
			p.once()
			for _, w := range workers {
				w.stop(t)
				require.Zero(t, w.aborted(), "a rebalance in good order aborts nothing: %v", w.aborts)
			}
		})
	})
}

// Workers die without a word and others take over under their ids; the broker crashes; partitions are taken away by force.
func TestPipesDieAndAreReplaced(t *testing.T) {
	everyWay(t, func(t *testing.T, level int16, protocol string) {
		for seed := range uint64(2) {
			inPlant(t, level, 4, func(t *testing.T, p *plant) {
				rng := rand.New(rand.NewPCG(seed, uint64(level)))
				start := func(i int) *worker { return p.start(fmt.Sprint("worker-", i), protocol, nil) }
				workers := []*worker{start(0), start(1), start(2)}
				for range 12 {
					p.write(60)
					time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
					i := rng.IntN(len(workers))
					switch rng.IntN(5) {
					case 0:
						require.NoError(t, p.k.Crash(context.Background()))
						require.NoError(t, p.k.Restart(context.Background()))
					case 1:
						if g := workers[i].c.Generation(); g.ID > 0 {
							_ = p.k.FenceMember(t.Context(), "g", g.MemberID) // it may be gone already
						}
					case 2:
						p.k.Disconnect()
					default:
						workers[i].kill()
						workers[i] = start(i)
					}
				}
				p.once()
				for _, w := range workers {
					w.stop(t)
					require.ErrorIs(t, w.err, context.Canceled)
				}
			})
		}
	})
}

// Two processes with one id: the newer one works, the older one is told by whom it was fenced.
func TestFencedPipeSaysByWhom(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		inPlant(t, level, 2, func(t *testing.T, p *plant) {
			p.write(100)
			old := p.start("a", "classic", nil)
			p.await(100)
			fresh := p.start("a", "classic", nil)
			for range 10 {
				p.write(100)
				time.Sleep(200 * time.Millisecond)
			}
			<-old.ended
			require.Equal(t, txn.Fenced, txn.Class(old.err))
			var fenced *txn.FencedError
			require.ErrorAs(t, old.err, &fenced)
			require.Equal(t, txn.NewInstance, fenced.By)
			old.close(t)
			p.once()
			fresh.stop(t)
		})
	})
}

// A loop of one's own with Do and Consume rides out the same, if only it reads again after an error.
func TestLoopWithDoIsExactlyOnce(t *testing.T) {
	everyWay(t, func(t *testing.T, level int16, protocol string) {
		inPlant(t, level, 2, func(t *testing.T, p *plant) {
			ctx, cancel := context.WithCancel(t.Context())
			w := p.reader(protocol)
			s := open(t, w.cl, "a")
			stop, err := s.Consume(w.c)
			require.NoError(t, err)
			failed := 0
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for ctx.Err() == nil {
					rs, err := w.c.Poll(ctx, 30)
					if err != nil {
						continue
					}
					bounded, cancel := context.WithTimeout(context.Background(), time.Second)
					err = s.Do(bounded, func(ctx context.Context, tx *txn.Tx) error {
						for _, r := range rs {
							if err := tx.Submit(ctx, producer.Record{Topic: "out", Value: r.Value}, nil); err != nil {
								return err
							}
						}
						if failed++; failed%7 == 0 {
							return errors.New("chance")
						}
						return nil
					})
					cancel()
					require.NotEqual(t, txn.Fenced, txn.Class(err), "%v", err)
				}
			}()
			for i, rule := range []fault.Rule{fault.On(wire.KeyEndTxn).LoseResponse().Times(1), fault.On(wire.KeyEndTxn).Hang().Times(1), fault.On(wire.KeyTxnOffsetCommit).LoseResponse().Times(1),
				fault.On(wire.KeyEndTxn).Error(errcode.CoordinatorNotAvailable).Times(20), fault.Produce().LoseResponse().Times(2), fault.On(wire.KeyOffsetFetch).Error(errcode.CoordinatorLoadInProgress).Times(30)} {
				p.write(100)
				p.k.Inject(rule)
				p.write(100)
				time.Sleep(time.Duration(i) * time.Second)
			}
			p.once()
			cancel()
			<-ended
			require.Greater(t, failed, 7)
			stop()
			require.NoError(t, w.c.Close(t.Context()))
		})
	})
}

// A pipe whose consumer is closed by somebody else commits what it has and ends.
func TestPipeEndsWithItsConsumer(t *testing.T) {
	inPlant(t, 2, 2, func(t *testing.T, p *plant) {
		p.write(100)
		some, n := make(chan struct{}), 0
		w := p.start("a", "consumer", func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if n++; n == 10 {
				close(some)
			}
			time.Sleep(time.Millisecond)
			return passOn(ctx, tx, r)
		}, txn.CommitEvery(30*time.Second))
		<-some
		require.NoError(t, w.c.Close(t.Context()))
		<-w.ended
		require.ErrorIs(t, w.err, consumer.ErrClosed)
		require.Zero(t, w.aborted(), "%v", w.aborts)
		require.NoError(t, w.s.Close(t.Context()))
		out := len(p.outcome())
		require.Positive(t, out)
		w = p.start("b", "consumer", nil)
		p.once()
		w.stop(t)
	})
}

// A pipe ends with a commit in doubt, because its session was fenced before it could ask again. Another pipe on the same
// consumer goes on behind what was committed after all, or at what was not.
func TestACommitInDoubtIsNotDoneAgainByTheNextPipe(t *testing.T) {
	for name, way := range map[string]func(fault.Rule) fault.Rule{"it was committed": fault.Rule.LoseResponse, "it was not": fault.Rule.DropConnection} {
		t.Run(name, func(t *testing.T) {
			everyLevel(t, func(t *testing.T, level int16) {
				inPlant(t, level, 2, func(t *testing.T, p *plant) {
					p.write(20)
					p.k.Inject(way(fault.On(wire.KeyEndTxn).Times(1)))
					p.k.Inject(fault.On(wire.KeyEndTxn).Error(errcode.ProducerFenced).Times(1))
					w := p.start("a", "classic", nil)
					<-w.ended
					require.ErrorIs(t, w.err, txn.ErrOutcomeUnknown)
					require.ErrorIs(t, w.err, txn.ErrFenced)
					require.NoError(t, w.s.Close(t.Context()))
					p.write(20)
					w = p.pipe(w.again(), "a", nil)
					p.once()
					w.stop(t)
				})
			})
		})
	}
}

// A pipe ends with a commit in doubt, because its ctx ended and Grace passed. Whoever goes on with the consumer, another pipe
// of the session or another session when this one is closed, goes on behind what was committed, or at what was not.
func TestAPipeAfterGraceGoesOnWhereTheCommitInDoubtEnded(t *testing.T) {
	for name, way := range map[string]func(fault.Rule) fault.Rule{"it was committed": fault.Rule.LoseResponse, "it was not": fault.Rule.DropConnection} {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, same session %v", name, same), func(t *testing.T) {
				everyLevel(t, func(t *testing.T, level int16) {
					inPlant(t, level, 2, func(t *testing.T, p *plant) {
						p.write(20)
						in := p.k.Inject(way(fault.On(wire.KeyEndTxn)))
						handled := make(chan struct{}, 100)
						w := p.start("a", "classic", func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
							handled <- struct{}{}
							return passOn(ctx, tx, r)
						}, txn.Grace(time.Second))
						<-handled
						time.Sleep(time.Second) // the commit of it, and of what else came at once, is asked for
						w.cancel()
						<-w.ended
						require.ErrorIs(t, w.err, txn.ErrOutcomeUnknown)
						require.ErrorIs(t, w.err, context.Canceled)
						in.Remove()
						p.write(20)
						if !same {
							require.NoError(t, w.s.Close(t.Context()))
							w = p.pipe(w.again(), "a", nil)
							p.once()
							w.stop(t)
							return
						}
						ctx, cancel := context.WithCancel(t.Context())
						ended := make(chan error)
						go func() { ended <- w.s.Pipe(ctx, w.c, passOn) }()
						p.once()
						cancel()
						require.ErrorIs(t, <-ended, context.Canceled)
						w.close(t)
					})
				})
			})
		}
	}
}
