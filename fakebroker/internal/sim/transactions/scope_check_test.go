package transactions

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// startAt begins with a producer that is known already, with an epoch.
func (c *coord) startAt(first int16, now time.Time) {
	c.last = known(first, c.level, now)
	c.do(coordOp{now, nil})
}

// known is the record of an idle producer.
func known(epoch, level int16, now time.Time) coordinator.Record {
	v := logrecord.NewTransactionLogValue()
	v.ProducerId, v.ProducerEpoch, v.TransactionTimeoutMs, v.TransactionStatus = 1000, epoch, scopeTimeout, int8(transaction.Empty)
	v.TransactionStartTimestampMs, v.TransactionLastUpdateTimestampMs, v.TransactionPartitions = -1, now.UnixMilli(), nil
	return coordinator.Record{Key: &logrecord.TransactionLogKey{TransactionalId: scopeID}, Value: v, Version: min(level, 1)}
}

// fate is how a record's transaction ended in its partition.
type fate struct {
	by  transaction.Producer
	end wish
}

// fates goes through a partition's log and checks what must hold in it: E1, E2 and E5 of the invariants.
func (p *part) fates(seen map[label]fate) error {
	open := map[int64][]label{}
	last := map[transaction.Producer]int32{}
	fenced := map[int64]int16{}
	coordinators := int32(0)
	for i, e := range p.log {
		if high, ok := fenced[e.by.ID]; ok && e.by.Epoch < high {
			return fmt.Errorf("E5: out-%d offset %d is of %v, and a marker of epoch %d was there before", p.index, i, e.by, high)
		}
		if e.control {
			fenced[e.by.ID] = e.by.Epoch
			if e.epoch < coordinators {
				return fmt.Errorf("E3: out-%d offset %d is a marker of coordinator epoch %d after one of %d", p.index, i, e.epoch, coordinators)
			}
			coordinators = e.epoch
			end := aborts
			if e.commit {
				end = commits
			}
			for _, l := range open[e.by.ID] {
				f := seen[l]
				f.end = end
				seen[l] = f
			}
			open[e.by.ID] = nil
			continue
		}
		want := int32(0)
		if seq, ok := last[e.by]; ok {
			want = seq + 1
		}
		if e.seq != want {
			return fmt.Errorf("E1: out-%d offset %d is sequence %d of %v, expected %d", p.index, i, e.seq, e.by, want)
		}
		last[e.by] = e.seq
		if _, twice := seen[e.of]; twice {
			return fmt.Errorf("E2: %+v is in a log twice", e.of)
		}
		seen[e.of] = fate{by: e.by}
		open[e.by.ID] = append(open[e.by.ID], e.of)
	}
	return nil
}

// check is what must hold in every state.
func (st *state) check(before *state) error {
	seen := map[label]fate{}
	visible := map[label]bool{}
	for i, p := range st.parts {
		if err := p.fates(seen); err != nil {
			return err
		}
		_, stable, high, _ := p.l.Offsets()
		if stable > high {
			return fmt.Errorf("E4: the last stable offset of out-%d is %d, its high watermark %d", i, stable, high)
		}
		if before != nil {
			if _, was, _, _ := before.parts[i].l.Offsets(); stable < was {
				return fmt.Errorf("E4: the last stable offset of out-%d goes back from %d to %d", i, was, stable)
			}
		}
		for _, l := range p.committed() {
			visible[l] = true
		}
	}
	ends := map[label]wish{} // of transactions
	for l, f := range seen {
		of := label{l.actor, l.txn, 0}
		a := &st.actors[l.actor]
		switch {
		case visible[l] && f.end != commits:
			return fmt.Errorf("E3: %+v is read, and its transaction is not committed", l)
		case f.end == nothing:
			continue
		case ends[of] != nothing && ends[of] != f.end:
			return fmt.Errorf("E3: transaction %d of actor %d is committed in one partition and aborted in the other", l.txn, l.actor)
		case f.end == commits && a.asked[l.txn] != commits:
			return fmt.Errorf("E6: transaction %d of actor %d is committed, which its client has not asked for (it is at transaction %d)", l.txn, l.actor, a.txn)
		case f.end == aborts && a.told[l.txn] == commits:
			return fmt.Errorf("E6: transaction %d of actor %d is aborted, and its client was told that it is committed", l.txn, l.actor)
		}
		ends[of] = f.end
	}
	return nil
}

// quiet reports whether nothing is under way any more but what time brings.
func (st *state) quiet() bool {
	for i := range st.actors {
		if !st.actors[i].idle() {
			return false
		}
	}
	return len(st.late)+len(st.pending)+len(st.orders) == 0
}

// settle lets time pass until every transaction is over, and checks the end: nothing is open, and every client was told the
// truth.
func (st *state) settle() error {
	end := st.after("everybody is done; time passes")
	for range 3 {
		end.now = end.now.Add(2 * scopeTimeout * time.Millisecond)
		end.command(tick{})
		for len(end.orders) > 0 {
			list := end.marked(nil, 0)
			end = list[0]
		}
	}
	if err := end.check(st); err != nil {
		return fmt.Errorf("%w\n%s", err, end.step)
	}
	if v := end.c.view(end.now); v.State == transaction.Ongoing || v.State == transaction.PrepareCommit || v.State == transaction.PrepareAbort {
		return fmt.Errorf("E4: the coordinator's transaction stays %s", v.State)
	}
	seen := map[label]fate{}
	visible := map[[2]int8]int8{}
	for i, p := range end.parts {
		if err := p.fates(seen); err != nil {
			return err
		}
		if _, stable, high, _ := p.l.Offsets(); stable != high {
			return fmt.Errorf("E4: a transaction hangs in out-%d: last stable offset %d, high watermark %d", i, stable, high)
		}
		for _, l := range p.committed() {
			visible[[2]int8{l.actor, l.txn}]++
		}
	}
	for i := range end.actors {
		a := &end.actors[i]
		for n := range a.told {
			got := visible[[2]int8{int8(i), int8(n)}]
			switch {
			case a.told[n] == commits && got != 2:
				return fmt.Errorf("E3: actor %d was told that transaction %d is committed, and %d of its 2 records are read", i, n, got)
			case a.told[n] == aborts && got != 0:
				return fmt.Errorf("E3: actor %d was told that transaction %d is aborted, and %d of its records are read", i, n, got)
			case got != 0 && got != 2:
				return fmt.Errorf("E3: %d of 2 records of transaction %d of actor %d are read", got, n, i)
			}
		}
	}
	return nil
}
