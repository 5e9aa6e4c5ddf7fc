package fetch

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// FuzzHostile takes an answer apart as the driver and the reader do, whatever bytes it has. Nothing may panic, offsets
// handed out must rise and lie below what the machine takes for the next position, and what is decompressed stays
// within its limit.
func FuzzHostile(f *testing.F) {
	log := kafkaLogs(f)[0]
	for version := int16(4); version <= 18; version++ {
		f.Add(version, encoded(f, version, log.Log[:4000]))
		f.Add(version, encoded(f, version, nil))
	}
	bad := bytes.Clone(log.Log[:3000])
	bad[61+20] ^= 0xff
	f.Add(int16(12), encoded(f, 12, bad))
	budget := client.NewBudget(0)
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 4 || version > 18 {
			return
		}
		d := &Driver{cells: map[machine.TopicPartition]*Cell{}, budget: budget}
		charged := settle(budget, 0, int64(len(body)))
		defer charged.leave()
		ev, _, err := d.decodeFetch(&machine.Fetch{}, client.Reply{Version: version, Body: body}, charged)
		if err != nil {
			return
		}
		for _, p := range ev.Parts {
			for _, committed := range []bool{false, true} {
				readHostile(t, p, committed)
			}
		}
	})
}

func encoded(f *testing.F, version int16, records []byte) []byte {
	resp := message.NewFetchResponse()
	var d message.FetchResponsePartitionData
	d.SetDefaults()
	d.Records, d.HighWatermark = records, 300
	d.AbortedTransactions = []message.AbortedTransaction{{ProducerId: 7, FirstOffset: 7}}
	resp.Responses = []message.FetchableTopicResponse{{Topic: "t", TopicId: wire.UUID{1}, Partitions: []message.FetchResponsePartitionData{d}}}
	b, err := resp.AppendTo(nil, version)
	require.NoError(f, err)
	return b
}

func readHostile(t *testing.T, p machine.FetchedPart, committed bool) {
	if p.Next.Offset < 0 {
		require.Empty(t, p.Records)
		return
	}
	const limit = 1 << 20
	o := &Options{ReadCommitted: committed, CheckCRC: false, Decompressor: compress.NewDecompressor(), MaxDecompressed: limit}
	c := newCursor(&machine.Chunk{Records: p.Records, Aborted: p.Aborted, Next: p.Next}, o)
	var it record.Iterator
	last := int64(-1)
	for {
		ok, err := c.next(&it, last+1)
		if err != nil {
			require.True(t, errors.Is(err, machine.ErrCorrupt))
			return
		}
		if !ok {
			return
		}
		require.LessOrEqual(t, len(it.Decompressed()), limit)
		var r record.Record
		for it.Into(&r) {
			if r.Offset > last {
				last = r.Offset
			}
		}
	}
}
