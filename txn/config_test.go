package txn_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func TestPropertiesOfATransactionalProducer(t *testing.T) {
	of, c, err := txn.FromProperties(map[string]string{
		"bootstrap.servers": "a:9092", "transactional.id": "billing-1", "transaction.timeout.ms": "10000", "linger.ms": "20",
		"acks": "all", "enable.idempotence": "true", "transaction.two.phase.commit.enable": "false", "request.timeout.ms": "5000",
	})
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, []string{"a:9092"}, of.Seeds)
	require.Equal(t, "billing-1", c.ID)
	require.Equal(t, 10*time.Second, c.Timeout)
	require.Equal(t, 20*time.Millisecond, c.Producer.Linger)
	require.Equal(t, 5*time.Second, c.Producer.RequestTimeout)
	require.Equal(t, 256<<10, c.Producer.BatchSize, "the default of transactions")
	text := c.String()
	for _, line := range []string{"transactional.id=billing-1", "transaction.timeout.ms=10000", "linger.ms=20", "acks=all"} {
		require.Contains(t, strings.Split(text, "\n"), line)
	}

	_, c, err = txn.FromProperties(map[string]string{"batch.size": "16384", "max.block.ms": "5000"})
	require.NoError(t, err)
	require.Equal(t, 16384, c.Producer.BatchSize, "what was set stays")
	require.Equal(t, 5*time.Second, c.Producer.MaxBlock)
	txn.Producer(producer.BatchSize(1000))(&c)
	require.Equal(t, 1000, c.Producer.BatchSize)

	_, _, err = txn.FromProperties(map[string]string{"transactional.ID": "x", "transaction.timeout": "1", "transaction.two.phase.commit.enable": "true"})
	for _, part := range []string{"did you mean transactional.id?", "did you mean transaction.timeout.ms?", "KIP-939"} {
		require.ErrorContains(t, err, part)
	}
	_, _, err = producer.FromProperties(map[string]string{"transactional.id": "x"})
	require.ErrorContains(t, err, "txn.FromProperties")
}

func TestValidateSaysWhy(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*txn.Config)
		says   []string
	}{
		"id":          {func(c *txn.Config) { c.ID = "" }, []string{"transactional.id", "across restarts"}},
		"timeout":     {func(c *txn.Config) { c.Timeout = 0 }, []string{"transaction.timeout.ms", "transaction.max.timeout.ms"}},
		"acks":        {func(c *txn.Config) { c.Producer.Acks = producer.AcksLeader }, []string{"acks", "acks=all"}},
		"idempotence": {func(c *txn.Config) { c.Producer.Idempotence = false }, []string{"enable.idempotence", "transactions need"}},
		"retries":     {func(c *txn.Config) { c.Producer.Retries = 0 }, []string{"retries"}},
		"in flight":   {func(c *txn.Config) { c.Producer.MaxInFlight = 6 }, []string{"max.in.flight.requests.per.connection", "5"}},
		"linger":      {func(c *txn.Config) { c.Producer.Linger = -1 }, []string{"linger.ms"}},
	} {
		c := txn.DefaultConfig()
		c.ID = "tx"
		require.NoError(t, c.Validate())
		x.change(&c)
		err := c.Validate()
		require.Error(t, err, name)
		var field *client.FieldError
		require.ErrorAs(t, err, &field, name)
		for _, part := range x.says {
			require.ErrorContains(t, err, part, name)
		}
		_, err = txn.NewFromConfig(t.Context(), idle(t), c)
		require.Equal(t, txn.Fenced, txn.Class(err), name)
	}
	_, err := txn.New(t.Context(), idle(t), "tx", txn.Client(client.ClientID("x")))
	require.ErrorContains(t, err, "txn.Client is for Dial")
}

// Nobody answers: the log says so after a few seconds and then ever more rarely, and New ends after max.block.ms, or earlier
// with its ctx; its error says what stood in the way.
func TestNewSaysWhatStandsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := cluster(t, 2)
		require.NoError(t, k.Stop(t.Context()))
		var log lines
		cl := connect(t, k, client.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		began := time.Now()
		_, err := txn.New(t.Context(), cl, "tx")
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, err, client.ErrTimeout)
		require.Equal(t, txn.Abortable, txn.Class(err))
		for _, part := range []string{"max.block.ms (1m0s)", "the last attempt said", "is the broker running"} {
			require.ErrorContains(t, err, part)
		}
		said := log.with("no producer id yet")
		require.Len(t, said, 4, "after 3, 9, 21 and 45 seconds")
		for _, part := range []string{"level=WARN", "transactional.id=tx", "after=3s", "is the broker running"} {
			require.Contains(t, said[0], part)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = txn.New(ctx, cl, "tx")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the last attempt said")
		require.NoError(t, k.Restart(t.Context()))
		open(t, cl, "tx")
		time.Sleep(time.Hour)
		require.Len(t, log.with("no producer id yet"), 5, "nothing more when it is over")
	})
}

// lines is a log that can be asked.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) with(part string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			out = append(out, line)
		}
	}
	return out
}

// idle is a client that talks to nobody.
func idle(t *testing.T) *client.Client {
	cl, err := client.New(client.Seeds("127.0.0.1:1"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cl.Close(context.Background())) })
	return cl
}

func TestLintOfTimeouts(t *testing.T) {
	c := txn.DefaultConfig()
	c.ID = "tx"
	require.Empty(t, c.Lint())
	for _, x := range []struct {
		timeout time.Duration
		says    string
	}{
		{20 * time.Minute, "transaction.max.timeout.ms"},
		{2 * time.Second, "costs the session"},
		{30 * time.Second, "not above request.timeout.ms"},
	} {
		c.Timeout = x.timeout
		require.Contains(t, strings.Join(c.Lint(), "\n"), x.says)
	}
	c.Timeout, c.Producer.Linger, c.Producer.DeliveryTimeout = time.Minute, 20*time.Second, 5*time.Minute
	require.Contains(t, strings.Join(c.Lint(), "\n"), "linger.ms")
}

// The broker's refusal names the key on both sides.
func TestATimeoutThatTheBrokerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cl := cluster(t, 2, fakebroker.Config("transaction.max.timeout.ms", "10000"))
		_, err := txn.New(t.Context(), cl, "tx", txn.TransactionTimeout(time.Minute))
		require.ErrorIs(t, err, errcode.InvalidTransactionTimeout)
		require.Equal(t, txn.Fenced, txn.Class(err))
		require.ErrorContains(t, err, "transaction.timeout.ms")
		require.ErrorContains(t, err, "transaction.max.timeout.ms")
	})
}

func TestClassOfErrors(t *testing.T) {
	require.Equal(t, txn.None, txn.Class(nil))
	for class, sentinel := range map[txn.ErrorClass]error{txn.Abortable: txn.ErrAbortable, txn.Fenced: txn.ErrFenced, txn.OutcomeUnknown: txn.ErrOutcomeUnknown} {
		err := error(&txn.Error{Class: class, Op: "Commit", ID: "tx", Err: errcode.ProducerFenced, Hint: "stop"})
		require.Equal(t, class, txn.Class(err))
		require.ErrorIs(t, err, sentinel)
		require.ErrorIs(t, err, errcode.ProducerFenced)
		for _, part := range []string{`"tx"`, "Commit", class.String(), "PRODUCER_FENCED", "hint: stop"} {
			require.ErrorContains(t, err, part)
		}
		for other, not := range map[txn.ErrorClass]error{txn.Abortable: txn.ErrAbortable, txn.Fenced: txn.ErrFenced, txn.OutcomeUnknown: txn.ErrOutcomeUnknown} {
			if other != class {
				require.NotErrorIs(t, err, not)
			}
		}
	}
	require.Equal(t, txn.Abortable, txn.Class(errcode.InvalidRecord), "an error of the function given to Do: it was aborted")
}
