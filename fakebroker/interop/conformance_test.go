package interop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// scenarios is the conformance suite: each is told to Apache Kafka and to ottla, and the transcripts have to be equal.
// What a broker makes up is mapped by conversation.normal; there is no list of tolerated differences, because there are
// none.
var scenarios = map[string]func(*conversation){
	"produce in every version":            produceVersions,
	"fetch in every version":              fetchVersions,
	"produce errors":                      produceErrors,
	"produce batches that are refused":    produceRefused,
	"idempotent sequences":                idempotentSequences,
	"duplicates of the last five":         duplicateWindow,
	"fetch limits":                        fetchLimits,
	"fetch epochs and offsets":            fetchEpochs,
	"fetch sessions":                      fetchSessions,
	"offsets for every timestamp":         offsetsForTimestamps,
	"offsets in every version":            offsetVersions,
	"leader epochs":                       leaderEpochs,
	"log append time":                     logAppendTime,
	"broker side compression":             brokerCompression,
	"deleted records":                     deletedRecords,
	"a topic made again":                  topicMadeAgain,
	"metadata in every version":           metadataVersions,
	"creating topics in every version":    createVersions,
	"growing topics":                      growTopics,
	"describing topics page by page":      describePages,
	"config changes":                      configChanges,
	"timestamps out of bounds":            timestampBounds,
	"compacted topics need keys":          compactedKeys,
	"message sizes":                       messageSizes,
	"offset deltas with gaps":             offsetGaps,
	"min.insync.replicas beyond replicas": minInsync,
	"versions that do not exist":          absentVersions,
}

func TestConformance(t *testing.T) {
	ottla := startOttla(t, "--data", t.TempDir())
	learnOttlaAPIs(t, ottla.addr)
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		scenario := scenarios[name]
		t.Run(name, func(t *testing.T) {
			kafka := newConversation(t, kafkaAddr)
			scenario(kafka)
			ours := newConversation(t, ottla.addr)
			scenario(ours)
			requireSameTranscripts(t, kafka.transcript, ours.transcript)
		})
	}
}

func versions(k wire.Key) (all []int16) {
	first, last, _ := wire.Versions(k)
	for v := first; v <= last; v++ {
		all = append(all, v)
	}
	return all
}

func produceVersions(c *conversation) {
	c.create("cf-produce", 2)
	for _, v := range versions(wire.KeyProduce) {
		for codec := compress.None; codec <= compress.Zstd; codec++ {
			b := batch{records: values("one", "two", fmt.Sprint("v", v)), codec: codec}
			c.ask(fmt.Sprint("codec ", codec), v, c.produceRequest(v, "cf-produce", int32(v)%2, -1, b.bytes(c.t)))
		}
		c.ask("acks 1", v, c.produceRequest(v, "cf-produce", 0, 1, batch{records: values("x")}.bytes(c.t)))
	}
}

func fetchVersions(c *conversation) {
	c.create("cf-fetch", 1)
	for i := range 3 {
		c.write("cf-fetch", 0, batch{records: values("a", "b", fmt.Sprint(i))})
	}
	for _, v := range versions(wire.KeyFetch) {
		for offset := range int64(11) {
			c.ask(fmt.Sprint("from ", offset), v, c.fetchRequest(v, part("cf-fetch", 0, offset)))
		}
		c.ask("absent partition", v, c.fetchRequest(v, part("cf-fetch", 7, 0)))
		c.ask("nothing asked", v, c.fetchRequest(v))
	}
	zstd := batch{records: values("zzz"), codec: compress.Zstd}
	c.write("cf-fetch", 0, zstd)
	c.ask("zstd for old clients", 9, c.fetchRequest(9, part("cf-fetch", 0, 9)))
	c.ask("zstd for new clients", 10, c.fetchRequest(10, part("cf-fetch", 0, 9)))
	committed := c.fetchRequest(12, part("cf-fetch", 0, 0))
	committed.IsolationLevel = 1
	c.ask("read committed", 12, committed)
}

func produceErrors(c *conversation) {
	c.create("cf-errors", 1)
	good := batch{records: values("x")}.bytes(c.t)
	for _, v := range []int16{3, 7, 8, 9, 12, 13} {
		c.ask("absent partition", v, c.produceRequest(v, "cf-errors", 5, -1, good))
		c.ask("negative partition", v, c.produceRequest(v, "cf-errors", -1, -1, good))
		c.ask("acks 2", v, c.produceRequest(v, "cf-errors", 0, 2, good))
		c.ask("empty records", v, c.produceRequest(v, "cf-errors", 0, -1, []byte{}))
		c.ask("no topics", v, &message.ProduceRequest{Acks: -1, TimeoutMs: 1000})
		twice := c.produceRequest(v, "cf-errors", 0, -1, append(append([]byte{}, good...), good...))
		c.ask("two batches in a partition", v, twice)
	}
	unknown := c.produceRequest(13, "cf-errors", 0, -1, good)
	unknown.TopicData[0].TopicId = wire.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	c.ask("unknown id", 13, unknown)
	both := c.produceRequest(12, "cf-errors", 0, -1, good)
	both.TopicData = append(both.TopicData, message.TopicProduceData{Name: "cf-not-there",
		PartitionData: []message.PartitionProduceData{{Index: 0, Records: good}, {Index: 1, Records: good}}})
	c.ask("one topic of two is absent", 12, both)
}

func produceRefused(c *conversation) {
	c.create("cf-refused", 1)
	try := func(label string, change func(b []byte) []byte) {
		b := batch{records: values("first", "second", "third")}.bytes(c.t)
		c.ask(label, 12, c.produceRequest(12, "cf-refused", 0, -1, change(b)))
	}
	header := func(change func(h *record.BatchHeader)) func(b []byte) []byte {
		return func(b []byte) []byte {
			h, err := record.ParseHeader(b)
			require.NoError(c.t, err)
			change(&h)
			h.Put(b)
			h.CRC = record.Checksum(b)
			h.Put(b)
			return b
		}
	}
	try("as it is", func(b []byte) []byte { return b })
	try("wrong crc", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	try("cut", func(b []byte) []byte { return b[:len(b)-3] })
	try("only a header", func(b []byte) []byte { return b[:61] })
	try("rest behind the batch", func(b []byte) []byte { return append(b, 1, 2, 3) })
	try("base offset 7", func(b []byte) []byte { b[7] = 7; return b })
	try("magic 3", func(b []byte) []byte { b[16] = 3; return b })
	try("magic -1", func(b []byte) []byte { b[16] = 0xff; return b })
	try("size 3", func(b []byte) []byte { b[8], b[9], b[10], b[11] = 0, 0, 0, 3; return b })
	try("size 13", func(b []byte) []byte { b[8], b[9], b[10], b[11] = 0, 0, 0, 13; return b })
	try("negative size", func(b []byte) []byte { b[8] = 0x80; return b })
	try("size 20", func(b []byte) []byte { b[8], b[9], b[10], b[11] = 0, 0, 0, 20; return b })
	try("size 20 and magic 3", func(b []byte) []byte { b[8], b[9], b[10], b[11], b[16] = 0, 0, 0, 20, 3; return b })
	try("magic 1", func(b []byte) []byte { b[16] = 1; return b })
	try("count too large", header(func(h *record.BatchHeader) { h.Count = 4 }))
	try("count too small", header(func(h *record.BatchHeader) { h.Count = 2 }))
	try("last offset delta too large", header(func(h *record.BatchHeader) { h.LastOffsetDelta = 9 }))
	try("no records", header(func(h *record.BatchHeader) { h.Count = 0 }))
	try("negative count", header(func(h *record.BatchHeader) { h.Count = -1 }))
	try("control batch", header(func(h *record.BatchHeader) { h.Attributes |= record.AttrControl }))
	for codec := int16(1); codec <= 7; codec++ {
		try(fmt.Sprintf("codec %d that is none", codec), header(func(h *record.BatchHeader) { h.Attributes |= codec }))
	}
	for codec := compress.Gzip; codec <= compress.Zstd; codec++ {
		whole := func([]byte) []byte {
			return batch{records: values("first", "second", strings.Repeat("third ", 100)), codec: codec}.bytes(c.t)
		}
		for _, n := range []int{1, 5, 20} {
			try(fmt.Sprintf("%v without its last %d bytes", codec, n), func(b []byte) []byte {
				b = whole(b)
				return header(func(h *record.BatchHeader) { h.Length -= int32(n) })(b[:len(b)-n])
			})
		}
		for _, at := range []int{61, 63, 66, 70, 75, 80} {
			try(fmt.Sprintf("%v with another byte at %d", codec, at), func(b []byte) []byte {
				b = whole(b)
				b[at] ^= 0x55
				return header(func(*record.BatchHeader) {})(b)
			})
		}
		try(fmt.Sprint(codec, " with a count too large"), func(b []byte) []byte {
			return header(func(h *record.BatchHeader) { h.Count, h.LastOffsetDelta = 4, 3 })(whole(b))
		})
		try(fmt.Sprint(codec, " with a count too small"), func(b []byte) []byte {
			return header(func(h *record.BatchHeader) { h.Count, h.LastOffsetDelta = 2, 1 })(whole(b))
		})
	}
	for at := 61; at < 80; at++ {
		try(fmt.Sprint("another byte at ", at), func(b []byte) []byte {
			b[at] ^= 0x55
			return header(func(*record.BatchHeader) {})(b)
		})
	}
	try("producer without sequence", header(func(h *record.BatchHeader) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 4, 0, -1 }))
	try("log append time from a client", header(func(h *record.BatchHeader) { h.Attributes |= record.AttrLogAppendTime }))
	c.ask("what was kept", 12, c.fetchRequest(12, part("cf-refused", 0, 0)))
}

// offsetGaps sends records whose offset deltas leave gaps: as they are, in every codec, and to topics that change the codec.
func offsetGaps(c *conversation) {
	for _, kind := range []string{"producer", "uncompressed", "lz4"} {
		topic := "cf-gaps-" + kind
		c.create(topic, 1, "compression.type", kind)
		for codec := compress.None; codec <= compress.Zstd; codec++ {
			for _, deltas := range [][]int32{{0, 2}, {1, 5, 6}, {3}} {
				builder := record.NewBuilder(nil)
				for _, delta := range deltas {
					builder.AppendAt(delta, 0, epoch+int64(delta), nil, fmt.Append(nil, "delta ", delta), nil)
				}
				b := sealed(c.t, builder, record.NoProducer(), codec)
				h, err := record.ParseHeader(b)
				require.NoError(c.t, err)
				h.Count, h.LastOffsetDelta = int32(len(deltas)), int32(len(deltas))-1
				h.Put(b)
				h.CRC = record.Checksum(b)
				h.Put(b)
				c.ask(fmt.Sprint(codec, " ", deltas), 12, c.produceRequest(12, topic, 0, -1, b))
			}
		}
		c.stored(topic, 0)
	}
}

// stored notes what a partition holds, record by record; how it is compressed is each broker's own.
func (c *conversation) stored(topic string, partition int32) {
	c.t.Helper()
	req := c.offsetsRequest(topic, -1)
	req.Topics[0].Partitions[0].PartitionIndex = partition
	end := c.quiet(7, req).(*message.ListOffsetsResponse).Topics[0].Partitions[0].Offset
	for next := int64(0); next < end; {
		resp := c.quiet(12, c.fetchRequest(12, part(topic, partition, next))).(*message.FetchResponse)
		for rest := resp.Responses[0].Partitions[0].Records; len(rest) > 0; {
			one, more, err := record.Next(rest)
			require.NoError(c.t, err)
			h, err := record.ParseHeader(one)
			require.NoError(c.t, err)
			line := fmt.Sprintf("stored in %s: offset %d count %d codec %v last delta %d times %d to %d:", topic, h.BaseOffset, h.Count, h.Codec(),
				h.LastOffsetDelta, h.BaseTimestamp-epoch, h.MaxTimestamp-epoch)
			it, err := record.Open(one, record.ReadOptions{Decompressor: compress.NewDecompressor()})
			require.NoError(c.t, err)
			for r := range it.All() {
				line += fmt.Sprintf(" %d %q %q", r.Offset, r.Key, r.Value)
			}
			require.NoError(c.t, it.Err())
			c.transcript = append(c.transcript, line)
			rest, next = more, h.NextOffset()
		}
	}
}

// idempotent is a batch of n records of a producer.
func (c *conversation) idempotent(id int64, epoch int16, sequence int32, n int) []byte {
	b := batch{stamp: &record.Stamp{ProducerID: id, ProducerEpoch: epoch, BaseSequence: sequence}}
	for i := range n {
		b.records = append(b.records, values(fmt.Sprint(sequence, "+", i))...)
	}
	return b.bytes(c.t)
}

// initProducer is a new producer's id and epoch.
func (c *conversation) initProducer(version int16) (id int64, epoch int16) {
	c.t.Helper()
	awaitProducerIDs(c)
	resp := c.ask("init producer", version, initFor("", -1, -1)).(*message.InitProducerIdResponse)
	return resp.ProducerId, resp.ProducerEpoch
}

// awaitProducerIDs waits until the broker has a block of producer ids from the controller, for which Apache Kafka lets
// clients wait.
func awaitProducerIDs(c *conversation) {
	c.t.Helper()
	eventually(c.t, "there are producer ids", func() bool {
		return c.quiet(4, initFor("", -1, -1)).(*message.InitProducerIdResponse).ErrorCode == 0
	})
}

func idempotentSequences(c *conversation) {
	c.create("cf-sequences", 1)
	id, producerEpoch := c.initProducer(4)
	send := func(label string, id int64, e int16, sequence int32, n int) {
		c.ask(label, 12, c.produceRequest(12, "cf-sequences", 0, -1, c.idempotent(id, e, sequence, n)))
	}
	send("first", id, producerEpoch, 0, 3)
	send("next", id, producerEpoch, 3, 2)
	send("gap", id, producerEpoch, 9, 1)
	send("back by one", id, producerEpoch, 4, 1)
	send("overlap", id, producerEpoch, 3, 3)
	send("the last again", id, producerEpoch, 3, 2)
	send("the first again", id, producerEpoch, 0, 3)
	send("next epoch not from 0", id, producerEpoch+1, 5, 1)
	send("next epoch from 0", id, producerEpoch+1, 0, 1)
	send("old epoch", id, producerEpoch, 5, 1)
	send("unknown producer, not from 0", id+100000, 0, 12, 1)
	send("unknown producer, from 0", id+100001, 0, 0, 1)
	send("unknown producer, up to the end", id+100002, 0, 2147483645, 3)
	send("around the end", id+100002, 0, 0, 2)
	send("around the end again", id+100002, 0, 2147483645, 3)
	send("epoch after the last", id+100003, 32767, 0, 1)
}

func duplicateWindow(c *conversation) {
	c.create("cf-window", 1)
	id, producerEpoch := c.initProducer(5)
	for i := range int32(8) {
		c.ask("write", 11, c.produceRequest(11, "cf-window", 0, -1, c.idempotent(id, producerEpoch, 2*i, 2)))
	}
	for i := range int32(8) {
		c.ask("again", 11, c.produceRequest(11, "cf-window", 0, -1, c.idempotent(id, producerEpoch, 2*i, 2)))
	}
	c.stored("cf-window", 0)
}

func fetchLimits(c *conversation) {
	c.create("cf-limits", 3)
	for p := range int32(3) {
		for i := range 4 {
			b := batch{records: values(fmt.Sprint("partition ", p), fmt.Sprint("batch ", i), string(make([]byte, 1000)))}
			c.write("cf-limits", p, b)
		}
	}
	for _, limit := range []int32{0, 1, 100, 1200, 2500, 5000} {
		p := part("cf-limits", 0, 0)
		p.maxBytes = limit
		c.ask(fmt.Sprint("partition limit ", limit), 12, c.fetchRequest(12, p))
		all := c.fetchRequest(12, part("cf-limits", 0, 4), part("cf-limits", 1, 0), part("cf-limits", 2, 11))
		all.MaxBytes = limit
		c.ask(fmt.Sprint("request limit ", limit), 12, all)
	}
	starved := c.fetchRequest(12, part("cf-limits", 0, 9))
	starved.MinBytes, starved.MaxWaitMs = 1<<20, 50
	c.ask("min.bytes not reached", 12, starved)
	now := c.fetchRequest(12, part("cf-limits", 0, 12))
	now.MaxWaitMs = 0
	c.ask("nothing there, no wait", 12, now)
}

func fetchEpochs(c *conversation) {
	c.create("cf-epochs", 1)
	c.write("cf-epochs", 0, batch{records: values("a", "b")})
	for _, e := range []int32{-1, 0, 1, 5} {
		p := part("cf-epochs", 0, 0)
		p.epoch = e
		c.ask(fmt.Sprint("current epoch ", e), 12, c.fetchRequest(12, p))
		p = part("cf-epochs", 0, 1)
		p.lastFetched = e
		c.ask(fmt.Sprint("last fetched epoch ", e), 12, c.fetchRequest(12, p))
	}
	for _, offset := range []int64{-2, -1, 2, 3, 1 << 40} {
		c.ask(fmt.Sprint("offset ", offset), 13, c.fetchRequest(13, part("cf-epochs", 0, offset)))
	}
	id := c.fetchRequest(13, part("cf-epochs", 0, 0))
	id.Topics[0].TopicId = wire.UUID{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}
	c.ask("unknown id", 13, id)
	name := c.fetchRequest(12, part("cf-not-there", 0, 0))
	c.ask("unknown name", 12, name)
}

func fetchSessions(c *conversation) {
	c.create("cf-session", 3)
	write := func(p int32) {
		c.write("cf-session", p, batch{records: values("x")})
	}
	for _, v := range []int16{7, 12, 13, 18} {
		write(0)
		write(1)
		full := c.fetchRequest(v, part("cf-session", 0, 0), part("cf-session", 1, 0), part("cf-session", 2, 0))
		full.SessionEpoch = 0
		resp := c.ask("open", v, full).(*message.FetchResponse)
		turn := int32(0)
		step := func(label string, parts ...fetchPart) {
			turn++
			req := c.fetchRequest(v, parts...)
			req.SessionId, req.SessionEpoch = resp.SessionId, turn
			c.ask(label, v, req)
		}
		step("forward", part("cf-session", 0, 1<<20), part("cf-session", 1, 1))
		step("nothing new")
		write(2)
		step("only what changed")
		wrong := c.fetchRequest(v)
		wrong.SessionId, wrong.SessionEpoch = resp.SessionId, 99
		c.ask("wrong epoch", v, wrong)
		absent := c.fetchRequest(v)
		absent.SessionId, absent.SessionEpoch = resp.SessionId+12345, 1
		c.ask("absent session", v, absent)
		forget := c.fetchRequest(v)
		forget.SessionId, forget.SessionEpoch = resp.SessionId, turn+1
		topic := message.FetchRequestForgottenTopic{Partitions: []int32{0, 2}}
		if v >= 13 {
			topic.TopicId = c.topicIDs["cf-session"]
		} else {
			topic.Topic = "cf-session"
		}
		forget.ForgottenTopicsData = []message.FetchRequestForgottenTopic{topic}
		c.ask("forget two", v, forget)
		end := c.fetchRequest(v)
		end.SessionId, end.SessionEpoch = resp.SessionId, -1
		c.ask("close", v, end)
		after := c.fetchRequest(v)
		after.SessionId, after.SessionEpoch = resp.SessionId, turn+2
		c.ask("after the close", v, after)
	}
}

func (c *conversation) offsetsRequest(topic string, timestamps ...int64) *message.ListOffsetsRequest {
	req := message.NewListOffsetsRequest()
	req.ReplicaId, req.TimeoutMs = -1, 1000
	for _, ts := range timestamps {
		req.Topics = append(req.Topics, message.ListOffsetsTopic{Name: topic,
			Partitions: []message.ListOffsetsPartition{{PartitionIndex: 0, CurrentLeaderEpoch: -1, Timestamp: ts}}})
	}
	return req
}

func offsetsForTimestamps(c *conversation) {
	c.create("cf-times", 1)
	c.ask("empty, latest", 7, c.offsetsRequest("cf-times", -1))
	c.ask("empty, earliest", 7, c.offsetsRequest("cf-times", -2))
	c.ask("empty, max timestamp", 7, c.offsetsRequest("cf-times", -3))
	c.ask("empty, at a time", 7, c.offsetsRequest("cf-times", epoch))
	times := []int64{10, 30, 20, 20, 50, 40, 5}
	for i := range times {
		r := record.Record{Timestamp: epoch + times[i]*1000, Value: []byte("x")}
		later := record.Record{Timestamp: epoch + times[i]*1000 + 500, Value: []byte("y")}
		c.write("cf-times", 0, batch{records: []record.Record{r, later}})
	}
	for _, special := range []int64{-1, -2, -3, -4, -5, -6, -7} {
		for _, v := range []int16{1, 2, 4, 5, 6, 7, 8, 9, 10, 11} {
			c.ask(fmt.Sprint("special ", special), v, c.offsetsRequest("cf-times", special))
		}
	}
	for s := int64(0); s <= 60; s += 3 {
		c.ask(fmt.Sprintf("at %d s", s), 8, c.offsetsRequest("cf-times", epoch+s*1000))
	}
	c.ask("just between", 8, c.offsetsRequest("cf-times", epoch+30001))
}

func offsetVersions(c *conversation) {
	c.create("cf-offsets", 1)
	c.write("cf-offsets", 0, batch{records: values("a", "b", "c")})
	for _, v := range versions(wire.KeyListOffsets) {
		c.ask("latest", v, c.offsetsRequest("cf-offsets", -1))
		c.ask("earliest", v, c.offsetsRequest("cf-offsets", -2))
		c.ask("unknown topic", v, c.offsetsRequest("cf-not-there", -1))
		c.ask("the same partition twice", v, c.offsetsRequest("cf-offsets", -1, -2))
		if v >= 2 {
			committed := c.offsetsRequest("cf-offsets", -1)
			committed.IsolationLevel = 1
			c.ask("read committed", v, committed)
		}
		if v >= 4 {
			fenced := c.offsetsRequest("cf-offsets", -1)
			fenced.Topics[0].Partitions[0].CurrentLeaderEpoch = 3
			c.ask("epoch ahead", v, fenced)
		}
	}
}

func leaderEpochs(c *conversation) {
	c.create("cf-leader", 1)
	c.write("cf-leader", 0, batch{records: values("a", "b", "c")})
	for _, v := range versions(wire.KeyOffsetForLeaderEpoch) {
		for _, e := range []int32{-1, 0, 1, 9} {
			for _, current := range []int32{-1, 0, 4} {
				req := message.NewOffsetForLeaderEpochRequest()
				req.ReplicaId = -1
				req.Topics = []message.OffsetForLeaderTopic{{Topic: "cf-leader", Partitions: []message.OffsetForLeaderPartition{
					{Partition: 0, CurrentLeaderEpoch: current, LeaderEpoch: e}, {Partition: 3, CurrentLeaderEpoch: -1, LeaderEpoch: e}}}}
				c.ask(fmt.Sprintf("epoch %d, current %d", e, current), v, req)
			}
		}
	}
}

func logAppendTime(c *conversation) {
	c.create("cf-append-time", 1, "message.timestamp.type", "LogAppendTime")
	for _, codec := range []compress.Codec{compress.None, compress.Lz4} {
		b := batch{records: values("a", "b"), codec: codec}
		c.ask("produce", 12, c.produceRequest(12, "cf-append-time", 0, -1, b.bytes(c.t)))
	}
	c.ask("latest", 7, c.offsetsRequest("cf-append-time", -1))
}

func brokerCompression(c *conversation) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		name := "cf-codec-" + codec.String()
		if codec == compress.None {
			name = "cf-codec-uncompressed"
		}
		c.create(name, 1, "compression.type", name[len("cf-codec-"):])
		for sent := compress.None; sent <= compress.Zstd; sent++ {
			b := batch{records: values("one", "two", string(make([]byte, 3000))), codec: sent}
			c.ask(fmt.Sprint(sent, " to ", codec), 12, c.produceRequest(12, name, 0, -1, b.bytes(c.t)))
		}
		c.stored(name, 0)
	}
}

func deletedRecords(c *conversation) {
	c.create("cf-delete", 1)
	for range 4 {
		c.write("cf-delete", 0, batch{records: values("a", "b", "c")})
	}
	remove := func(version int16, topic string, partition int32, offset int64) {
		req := message.NewDeleteRecordsRequest()
		req.TimeoutMs = 5000
		req.Topics = []message.DeleteRecordsTopic{{Name: topic, Partitions: []message.DeleteRecordsPartition{{PartitionIndex: partition, Offset: offset}}}}
		c.ask(fmt.Sprintf("delete %s-%d before %d", topic, partition, offset), version, req)
	}
	for v := range int16(3) {
		remove(v, "cf-delete", 0, 1)
		remove(v, "cf-delete", 4, 1)
		remove(v, "cf-not-there", 0, 1)
		remove(v, "cf-delete", 0, 13)
		remove(v, "cf-delete", 0, -2)
	}
	remove(2, "cf-delete", 0, 5)
	for offset := range int64(7) {
		c.ask(fmt.Sprint("fetch from ", offset), 12, c.fetchRequest(12, part("cf-delete", 0, offset)))
	}
	c.ask("earliest", 7, c.offsetsRequest("cf-delete", -2))
	remove(2, "cf-delete", 0, -1)
	c.ask("earliest of nothing", 7, c.offsetsRequest("cf-delete", -2))
	c.ask("at a time", 7, c.offsetsRequest("cf-delete", epoch))
	c.create("cf-delete-compacted", 1, "cleanup.policy", "compact")
	remove(2, "cf-delete-compacted", 0, 0)
}

func topicMadeAgain(c *conversation) {
	c.create("cf-again", 1)
	old := c.topicIDs["cf-again"]
	c.write("cf-again", 0, batch{records: values("old")})
	c.drop("cf-again")
	c.create("cf-again", 1)
	c.ask("latest of the new one", 7, c.offsetsRequest("cf-again", -1))
	stale := c.produceRequest(13, "cf-again", 0, -1, batch{records: values("x")}.bytes(c.t))
	stale.TopicData[0].TopicId = old
	c.ask("produce by the old id", 13, stale)
	fetch := c.fetchRequest(13, part("cf-again", 0, 0))
	fetch.Topics[0].TopicId = old
	c.ask("fetch by the old id", 13, fetch)
	byID := message.NewMetadataRequest()
	byID.Topics = []message.MetadataRequestTopic{{TopicId: old}}
	c.ask("metadata by the old id", 12, byID)
}
