package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// bank is a broker with a transaction that is committed, one that is open, and an id that has done nothing yet.
func bank(t *testing.T) (broker, *txn.Tx) {
	k := startBroker(t, fakebroker.Topic("orders", 3), fakebroker.Topic("payments", 1))
	begin := func(id string, records ...producer.Record) *txn.Tx {
		s, err := txn.New(t.Context(), k.cl, id)
		require.NoError(t, err)
		t.Cleanup(func() { s.Close(context.WithoutCancel(t.Context())) })
		tx, err := s.Begin(t.Context())
		require.NoError(t, err)
		for _, r := range records {
			r.Timestamp = noon
			_, err := tx.Send(t.Context(), r)
			require.NoError(t, err)
		}
		return tx
	}
	require.NoError(t, begin("billing", producer.Record{Topic: "orders", Value: []byte("a")}.To(0)).Commit(t.Context()))
	_, err := k.AwaitTransaction(t.Context(), "billing", fakebroker.TransactionIs(fakebroker.TransactionCompleteCommit)) // markers and all
	require.NoError(t, err)
	open := begin("packing", producer.Record{Topic: "orders", Value: []byte("b")}.To(1), producer.Record{Topic: "orders", Value: []byte("c")}.To(2),
		producer.Record{Topic: "payments", Value: []byte("d")}.To(0))
	begin("asleep")
	return k, open
}

var varyingWhen = regexp.MustCompile(`20[2-9]\d-\d\d-\d\dT[\d:.]{12}Z`)

// timeless puts words of their length in the place of times, and dots where the length differs too.
func timeless(out string) string {
	out = varyingWhen.ReplaceAllString(out, "WHEN-WHEN-WHEN-WHEN-WHEN")
	return regexp.MustCompile(`"(open|idle)_ms":\d+`).ReplaceAllString(out, `"${1}_ms":...`)
}

func TestTransactionsArePrintedInEveryForm(t *testing.T) {
	bank(t)
	for _, form := range []string{"table", "json", "jsonl"} {
		golden(t, "txns_list."+form, succeeds(t, "txns", "list", "-o", form))
		golden(t, "producers."+form, timeless(succeeds(t, "producers", "describe", "orders", "payments:0", "-o", form)))
		if form == "table" {
			golden(t, "txns_describe.table", timeless(succeeds(t, "txns", "describe", "billing", "asleep")))
			continue
		}
		golden(t, "txns_describe."+form, timeless(succeeds(t, "txns", "describe", "-o", form)))
	}
	require.Contains(t, succeeds(t, "txns", "describe", "packing"), "orders:1-2 payments:0")
	require.NotContains(t, succeeds(t, "producers", "describe", "orders", "--open"), "\norders  0 ")

	time.Sleep(5 * time.Millisecond) // longer than 1 ms
	for _, c := range []struct{ flag, value, ids string }{
		{"--state", "Ongoing", "packing"}, {"--state", "Empty", "asleep"}, {"--producer-id", "0", "billing"}, {"--longer-than", "1ms", "packing"}, {"--longer-than", "PT1H", ""},
		{"--pattern", "b.*", "billing"}, {"--pattern", "b", ""},
	} {
		out := succeeds(t, "txns", "list", "-o", "jsonl", c.flag, c.value)
		require.Equal(t, c.ids != "", strings.Contains(out, `{"transactional_id":"`+c.ids+`"`), "%+v: %s", c, out)
		require.Equal(t, min(len(c.ids), 1), strings.Count(out, "\n"), "%+v: %s", c, out)
	}
	require.Contains(t, fails(t, exitFailed, "txns", "list", "--state", "Asleep"), "it knows no state Asleep")
	require.Contains(t, fails(t, exitFailed, "txns", "list", "--pattern", "("), "INVALID_REGULAR_EXPRESSION")
	require.Contains(t, fails(t, exitUsage, "txns", "list", "--longer-than", "soon"), "is no duration")
	require.Contains(t, fails(t, exitFailed, "txns", "describe", "biling", "packing"), "transactional id 'biling' does not exist; did you mean 'billing'?\nottla: see 'ottla txns list'")
	require.Contains(t, fails(t, exitFailed, "producers", "describe", "ordes"), "topic 'ordes' does not exist; did you mean 'orders'?")
	require.Contains(t, fails(t, exitFailed, "producers", "describe", "orders:7"), "orders-7: UNKNOWN_TOPIC_OR_PARTITION")
	require.Contains(t, fails(t, exitUsage, "producers", "describe", "orders:x"), "want NAME or NAME:P")
	require.Contains(t, fails(t, exitFailed, "producers", "describe", "orders", "--broker-id", "7"), "broker 7")
}

func TestTransactionsAreAbortedAfterALook(t *testing.T) {
	k, open := bank(t)
	code, out, errs := typed(t, "", "txns", "abort", "packing")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "nothing was aborted; add --execute")
	golden(t, "txns_abort.table", out)
	errs = fails(t, exitFailed, "txns", "abort", "--topic", "orders:1", "--start-offset", "0", "--execute")
	require.Contains(t, errs, "the transaction since offset 0 of orders-1 does not hang")
	require.Contains(t, errs, "'ottla txns abort packing'")
	found, err := k.Transaction(t.Context(), "packing")
	require.NoError(t, err)
	require.Equal(t, fakebroker.TransactionOngoing, found.State, "until now nothing was done")

	errs = fails(t, exitFailed, "txns", "abort", "packing", "billing", "nobody", "--execute")
	require.Contains(t, errs, "transactional id 'billing' has nothing to abort: its state is CompleteCommit")
	require.Contains(t, errs, "transactional id 'nobody' does not exist")
	fenced := (*txn.FencedError)(nil)
	require.ErrorAs(t, open.Commit(t.Context()), &fenced)
	require.Equal(t, txn.Admin, fenced.By)
	require.Equal(t, "a\n", succeeds(t, "consume", "orders", "payments", "--isolation", "read_committed", "-e"))

	for _, c := range []struct {
		say  string
		args []string
	}{
		{"say what", nil},
		{"say what", []string{"--topic", "orders"}},
		{"want one --topic NAME:P", []string{"--start-offset", "3"}},
		{"want one --topic NAME:P", []string{"--start-offset", "3", "--topic", "orders"}},
		{"want one --topic NAME:P", []string{"--producer-id", "3", "--topic", "orders:1,2"}},
		{"name transactional ids, or --hanging", []string{"packing", "--hanging"}},
		{"can't be used together", []string{"--hanging", "--producer-id", "3"}},
		{"is no duration", []string{"--hanging", "--max-transaction-timeout", "soon"}},
	} {
		require.Contains(t, fails(t, exitUsage, append([]string{"txns", "abort"}, c.args...)...), c.say)
	}
	errs = fails(t, exitFailed, "txns", "abort", "--topic", "orders:0", "--start-offset", "9")
	require.Contains(t, errs, "no transaction is open since offset 9 of orders-0; see 'ottla producers describe orders:0'")
}

// What hangs is found, and aborted when told to; what is alive beside it goes on.
func TestHangingTransactionsAreAbortedAfterALook(t *testing.T) {
	k, open := bank(t)
	since := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	_, err := k.HangTransaction(t.Context(), "orders", 0, since)
	require.NoError(t, err)
	_, err = k.HangTransaction(t.Context(), "payments", 0, since)
	require.NoError(t, err)
	for _, form := range []string{"json", "jsonl"} {
		golden(t, "txns_hanging."+form, timeless(succeeds(t, "txns", "hanging", "-o", form)))
	}
	head, _, _ := strings.Cut(succeeds(t, "txns", "hanging"), "\n")
	require.Equal(t, "TOPIC PARTITION START-OFFSET PRODUCER-ID EPOCH COORDINATOR-EPOCH TRANSACTIONAL-ID LAST-WRITE IDLE-MS", strings.Join(strings.Fields(head), " "))
	require.NotContains(t, succeeds(t, "txns", "hanging", "--topic", "orders:0,1"), "payments")
	require.NotContains(t, succeeds(t, "txns", "hanging", "--broker-id", "1", "--topic", "payments"), "orders")
	require.NotContains(t, succeeds(t, "txns", "hanging", "--max-transaction-timeout", "876000h"), "orders")
	require.Contains(t, fails(t, exitFailed, "txns", "hanging", "--topic", "ordes"), "did you mean 'orders'?")
	require.Contains(t, fails(t, exitFailed, "txns", "hanging", "--broker-id", "7"), "--broker-id 7: there is no such broker, the cluster has 1")
	require.Contains(t, fails(t, exitUsage, "txns", "hanging", "--topic", "orders:x"), "want NAME or NAME:P")

	_, out, errs := typed(t, "", "txns", "abort", "--hanging", "-o", "jsonl")
	require.Contains(t, errs, "nothing was aborted; add --execute")
	require.Equal(t, 2, strings.Count(out, `"aborted":false`))
	out = succeeds(t, "txns", "abort", "--topic", "orders:0", "--start-offset", "2", "--execute", "-o", "jsonl")
	require.Contains(t, out, `{"topic":"orders","partition":0,"start_offset":2,`)
	require.Contains(t, out, `"aborted":true}`)
	_, out, errs = typed(t, "", "txns", "abort", "--hanging", "--execute", "-o", "jsonl")
	require.Empty(t, errs)
	require.Equal(t, 1, strings.Count(out, `"aborted":true`))
	_, out, errs = typed(t, "", "txns", "abort", "--hanging", "--execute", "-o", "jsonl")
	require.Empty(t, out)
	require.Equal(t, "ottla: there is nothing to abort\n", errs)
	require.NoError(t, open.Commit(t.Context()))
}

// What comes from stdin is one transaction: nothing of it is there unless all of it is.
func TestProduceInOneTransaction(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 1))
	code, out, errs := typed(t, "x:1\ny:2\n", "produce", "orders", "-k", ":", "--txn-id", "shop", "-o", "jsonl")
	require.Zero(t, code, errs)
	require.Equal(t, `{"topic":"orders","partition":0,"records":2,"first_offset":0,"last_offset":1}`+"\n", out)
	code, out, errs = typed(t, "z:3\nno key\n", "produce", "orders", "-k", ":", "--txn-id", "shop", "-o", "jsonl")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "stdin:2: there is no key separator")
	require.Contains(t, errs, "the transaction was aborted: nothing was written")
	require.Empty(t, out)
	require.Equal(t, "1\n2\n", succeeds(t, "consume", "orders", "--isolation", "read_committed", "-e"))
	// Whether the first record was on its way already when the second line failed is up to chance; nothing is left open.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := k.AwaitTransaction(ctx, "shop", func(tx *fakebroker.Transaction) bool { return len(tx.Partitions) == 0 })
	require.NoError(t, err)

	code, _, errs = typed(t, "x:1\n", "produce", "orders", "-X", "transactional.id=till", "-X", "transaction.timeout.ms=9000")
	require.Zero(t, code, errs)
	require.Contains(t, succeeds(t, "txns", "describe", "till", "-o", "jsonl"), `"timeout_ms":9000`)
	code, _, errs = typed(t, "x\n", "produce", "orders", "--txn-id", "till", "--acks", "1")
	require.Equal(t, exitUsage, code, errs)
	require.Contains(t, errs, "acks")
}
