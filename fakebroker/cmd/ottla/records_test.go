package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/record"
)

var noon = time.UnixMilli(1_700_000_000_000)

func TestLinesBecomeRecords(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 3))
	code, out, errs := typed(t, "a:one\nb:two\r\nc:\n:four", "produce", "orders", "-k", ":", "-H", "from=shop", "-H", "from=street", "-p", "2", "-z", "zstd", "--acks", "all")
	require.Zero(t, code, errs)
	golden(t, "produce.table", out)
	got, err := k.Records("orders", 2, 0)
	require.NoError(t, err)
	require.Len(t, got, 4)
	for i, want := range [][2]string{{"a", "one"}, {"b", "two"}, {"c", ""}, {"", "four"}} {
		require.Equal(t, want, [2]string{string(got[i].Key), string(got[i].Value)})
		require.NotNil(t, got[i].Value, "empty, not null")
		require.Equal(t, 2, got[i].Headers.Len())
	}
	file := filepath.Join(t.TempDir(), "more")
	require.NoError(t, os.WriteFile(file, []byte("x\n\ny\n"), 0o644))
	code, _, errs = typed(t, "z\n", "produce", "orders", file, "-", "-p", "0")
	require.Zero(t, code, errs)
	require.Equal(t, "x||y|z|", strings.ReplaceAll(succeeds(t, "consume", "orders", "-p", "0", "-e"), "\n", "|"))
}

func TestWhatCannotBeProducedIsNamed(t *testing.T) {
	startBroker(t, fakebroker.Topic("orders", 1), fakebroker.TopicWith(fakebroker.TopicSpec{Name: "small", Partitions: 1, Configs: map[string]string{"max.message.bytes": "200"}}))
	code, out, errs := typed(t, "a:1\nno key\nb:2\n", "produce", "orders", "-k", ":")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, `stdin:2: there is no key separator ":" in this line`)
	require.Contains(t, out, "orders", "what came before is written")

	code, _, errs = typed(t, strings.Repeat("x", 1000)+"\n", "produce", "small")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "stdin:1: ")
	require.Contains(t, errs, "max.message.bytes")
	require.Contains(t, errs, "1 records were not written")
	code, _, errs = typed(t, `{"key":"k","valeu":"v"}`, "produce", "orders", "--input", "jsonl")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, `unknown field "valeu"`)
	code, _, errs = typed(t, `{"value":"v"}{"value":"w"}`, "produce", "orders", "--input", "jsonl")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "one record a line")
	require.Contains(t, fails(t, exitFailed, "produce", "orders", "no-such-file"), "no such file")
	require.Contains(t, fails(t, exitUsage, "produce", "orders", "-H", "x"), "want NAME=VALUE")
	require.Contains(t, fails(t, exitUsage, "produce", "orders", "-z", "rar"), "rar")
	require.Contains(t, fails(t, exitUsage, "produce", "orders", "--acks", "2"), "--acks")
}

// What one cluster's records print as JSON makes the same records in another topic: nulls, bytes that are no text,
// repeated headers, times and partitions.
func TestConsumedJSONProducesTheSameRecords(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("from", 3), fakebroker.Topic("to", 3))
	p, err := producer.New(k.cl)
	require.NoError(t, err)
	defer p.Close(t.Context())
	hard := [][]byte{nil, {}, []byte("plain"), []byte("<b>&\u2028\"\\ \x00\n"), {0xff, 0xfe}, []byte("\uFFFD"), []byte(`{"json":1}`), {0xc3, 0x28, 0}}
	n := 0
	for i, key := range hard {
		for j, value := range hard {
			r := producer.Record{Topic: "from", Key: key, Value: value, Timestamp: noon.Add(time.Duration(i*100-j) * time.Hour),
				Headers: []producer.Header{{Key: "h", Value: value}, {Key: "h", Value: key}, {Key: string(key), Value: nil}}}
			_, err := p.Send(t.Context(), r.To(int32(n%3)))
			require.NoError(t, err)
			n++
		}
	}
	before := succeeds(t, "consume", "from", "-e", "-o", "jsonl")
	require.Equal(t, n, strings.Count(before, "\n"))
	code, _, errs := typed(t, before, "produce", "to", "--input", "jsonl")
	require.Zero(t, code, errs)
	for partition := range int32(3) {
		want, err := k.Records("from", partition, 0)
		require.NoError(t, err)
		got, err := k.Records("to", partition, 0)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i].Key, got[i].Key)
			require.Equal(t, want[i].Value, got[i].Value)
			require.Equal(t, want[i].Timestamp, got[i].Timestamp)
			require.Equal(t, want[i].Headers.AppendTo([]record.Header{}), got[i].Headers.AppendTo([]record.Header{}))
		}
	}
}

func TestConsumeStartsWhereItIsTold(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 2))
	k.send(t, "orders", noon, "a", "b", "c", "d", "e")
	for _, c := range []struct{ where, want string }{
		{"start", "abcde"}, {"end", ""}, {"-2", "de"}, {"-99", "abcde"}, {"3", "de"}, {"0:3", "de"}, {"@1700000120000", "cde"}, {"@2023-11-14T22:15:20Z", "cde"}, {"@-1h", ""},
	} {
		if c.where == "3" {
			require.Contains(t, fails(t, exitFailed, "consume", "orders", "-e", "-o", c.where), "orders-1 has offsets 0 to 0, not 3")
			c.want = "de"
			require.Equal(t, c.want, strings.ReplaceAll(succeeds(t, "consume", "orders", "-e", "-p", "0", "-o", c.where), "\n", ""), c.where)
			continue
		}
		require.Equal(t, c.want, strings.ReplaceAll(succeeds(t, "consume", "orders", "-e", "-o", c.where), "\n", ""), c.where)
	}
	require.Equal(t, "abcde", strings.ReplaceAll(succeeds(t, "consume", "orders", "-e"), "\n", ""), "-e alone starts at the start")
	require.Equal(t, "ab", strings.ReplaceAll(succeeds(t, "consume", "orders", "-o", "start", "-n", "2"), "\n", ""))
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-o", "somewhere"), "want start, end")
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-o", "start", "-o", "end"), "only one start")
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-o", "@yesterday"), "is no time")
	require.Contains(t, fails(t, exitFailed, "consume", "orders", "-p", "7"), "there is no partition 7")
	require.Contains(t, fails(t, exitFailed, "consume", "orders", "-o", "0:77"), "orders-0 has offsets 0 to 5, not 77")
}

func TestRecordsArePrintedInEveryForm(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 1))
	p, err := producer.New(k.cl)
	require.NoError(t, err)
	defer p.Close(t.Context())
	for _, r := range []producer.Record{{Key: []byte("k"), Value: []byte("one"), Headers: []producer.Header{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("2")}}}, {Value: []byte("two\xff")}, {Key: []byte("gone")}} {
		r.Topic, r.Timestamp = "orders", noon
		_, err := p.Send(t.Context(), r)
		require.NoError(t, err)
	}
	golden(t, "consume.json", succeeds(t, "consume", "orders", "-e", "-o", "json"))
	golden(t, "consume.jsonl", succeeds(t, "consume", "orders", "-e", "--output", "jsonl"))
	require.Equal(t, "[]\n", succeeds(t, "consume", "orders", "-e", "-o", "json", "-o", "end"))
	require.Equal(t, "orders/0/0@1700000000000 k(1)=one(3) a=1,b=2 100%\t!\x00\n",
		succeeds(t, "consume", "orders", "-n", "1", "-o", "start", "-f", `%t/%p/%o@%T %k(%K)=%s(%S) %h 100%%\t!\x00\n`))
	require.Equal(t, "gone -1\n", succeeds(t, "consume", "orders", "-e", "-o", "-1", "-f", `%k %S\n`))
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-f", "%z"), "want %t")
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-f", `\x9`), "hexadecimal")
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-f", "%s", "-o", "json"), "-f is for text")
}

// An endless consume gives out what it has as it comes, and ends when the user ends it.
func TestConsumeFollowsUntilInterrupted(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 1))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() { // ends by interrupt
		ended <- run(ctx, []string{"consume", "orders", "-o", "start"}, streams{strings.NewReader(""), w, io.Discard})
		w.Close()
	}()
	for _, v := range []string{"one", "two"} {
		k.send(t, "orders", noon, v)
		line := make([]byte, 4)
		_, err := io.ReadFull(r, line)
		require.NoError(t, err)
		require.Equal(t, v+"\n", string(line))
	}
	interrupt()
	require.Equal(t, exitInterrupted, <-ended)
}

// A member of a group goes on where the group was, and commits what it has printed.
func TestConsumeAsAMemberOfAGroup(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 2))
	k.send(t, "orders", noon, "a", "b", "c", "d")
	read := func(args ...string) string {
		out := succeeds(t, append([]string{"consume", "orders", "-g", "billing"}, args...)...)
		return strings.ReplaceAll(out, "\n", "")
	}
	require.Equal(t, "ab", read("-o", "start", "-n", "2"))
	require.Equal(t, "cd", read("-e"))
	require.Equal(t, "", read("-e"))
	k.send(t, "orders", noon, "e")
	require.Contains(t, succeeds(t, "groups", "lag", "billing", "-o", "jsonl"), `"committed":4,"end":5,"lag":1`)
	require.Equal(t, "e", read("-e", "-X", "group.protocol=classic"))
	require.Contains(t, succeeds(t, "groups", "lag", "billing", "-o", "jsonl"), `"committed":5,"end":5,"lag":0`)
	succeeds(t, "groups", "reset-offsets", "billing", "--to-earliest", "--execute")
	require.Equal(t, "abcde", read("-e", "-X", "enable.auto.commit=false"))
	require.Equal(t, "abcde", read("-e"), "nothing was committed")

	for _, args := range [][]string{{"-o", "3"}, {"-o", "-1"}, {"-o", "0:3"}} {
		require.Contains(t, fails(t, exitUsage, append([]string{"consume", "orders", "-g", "billing"}, args...)...), "ottla groups reset-offsets billing")
	}
	require.Contains(t, fails(t, exitUsage, "consume", "orders", "-g", "billing", "-p", "0"), "the group gives out the partitions")
}
