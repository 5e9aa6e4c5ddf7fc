package interop

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// conversation is one scenario's talk with one broker: raw requests in chosen versions, and a transcript of the answers
// in which everything that a broker makes up is replaced by a placeholder.
type conversation struct {
	t          testing.TB
	addr       string
	client     string // its id, if it matters
	conn       net.Conn
	transcript []string
	names      map[string]string // made-up value -> placeholder
	counts     map[string]int
	topicIDs   map[string]wire.UUID // of the topics it created
	keeps      bool                 // these, because the broker will be gone at the end
}

func newConversation(t testing.TB, addr string) *conversation {
	c := &conversation{t: t, addr: addr, names: map[string]string{}, counts: map[string]int{}, topicIDs: map[string]wire.UUID{}}
	c.dial()
	return c
}

func (c *conversation) dial() {
	conn, err := net.DialTimeout("tcp", c.addr, patience)
	require.NoError(c.t, err)
	c.conn = conn
	c.t.Cleanup(func() { conn.Close() })
}

// ask sends one request and notes the answer under a label. It returns the answer, or nil when the broker closed.
func (c *conversation) ask(label string, version int16, req message.Request) message.Response {
	c.t.Helper()
	resp := c.exchange(version, req)
	if resp == nil {
		c.note(label, version, req, "closed")
		return nil
	}
	sortHashed(resp)
	text, err := wirejson.Append(nil, resp, version)
	require.NoError(c.t, err)
	c.note(label, version, req, c.normal(req.Key(), text))
	return resp
}

// sortHashed puts an answer into order where Apache Kafka's follows a hash table, which says nothing about the request, and
// leaves out what does not belong to the scenario.
func sortHashed(resp message.Response) {
	switch r := resp.(type) {
	case *message.DeleteTopicsResponse:
		slices.SortFunc(r.Responses, func(x, y message.DeletableTopicResult) int { return strings.Compare(deref(x.Name), deref(y.Name)) })
	case *message.DescribeConfigsResponse: // a resource's keys
		for _, result := range r.Results {
			slices.SortFunc(result.Configs, func(x, y message.DescribeConfigsResourceResult) int { return strings.Compare(x.Name, y.Name) })
		}
	case *message.ApiVersionsResponse: // what later issues bring is compared when it is there
		r.ApiKeys = slices.DeleteFunc(r.ApiKeys, func(a message.ApiVersion) bool { return !ottlaAPIs[a.ApiKey] })
		slices.SortFunc(r.SupportedFeatures, func(x, y message.SupportedFeatureKey) int { return strings.Compare(x.Name, y.Name) })
		slices.SortFunc(r.FinalizedFeatures, func(x, y message.FinalizedFeatureKey) int { return strings.Compare(x.Name, y.Name) })
	case *message.ListConfigResourcesResponse: // other tests have topics, too
		r.ConfigResources = slices.DeleteFunc(r.ConfigResources, func(c message.ConfigResource) bool {
			return c.ResourceType == 2 && c.ResourceName != "cf-resources"
		})
		slices.SortStableFunc(r.ConfigResources, func(x, y message.ConfigResource) int { return int(x.ResourceType - y.ResourceType) })
	case *message.ProduceResponse: // the partitions of a topic that were refused
		for _, topic := range r.Responses {
			slices.SortStableFunc(topic.PartitionResponses, func(x, y message.PartitionProduceResponse) int { return int(x.Index - y.Index) })
		}
	}
}

// quiet is ask without a line in the transcript.
func (c *conversation) quiet(version int16, req message.Request) message.Response {
	c.t.Helper()
	resp := c.exchange(version, req)
	require.NotNil(c.t, resp, "%v v%d: the broker closed the connection", req.Key(), version)
	return resp
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (c *conversation) note(label string, version int16, req message.Request, text string) {
	c.transcript = append(c.transcript, fmt.Sprintf("%s | %v v%d | %s", label, req.Key(), version, text))
}

func (c *conversation) exchange(version int16, req message.Request) message.Response {
	c.t.Helper()
	body := wire.AppendRequestHeader(make([]byte, 4), req.Key(), version, 77, new(cmp.Or(c.client, "conformance")))
	body, err := req.AppendTo(body, version)
	require.NoError(c.t, err, "%v v%d", req.Key(), version)
	answer := c.send(body)
	if answer == nil {
		return nil
	}
	r := wire.NewReader(answer)
	id, err := wire.ReadResponseHeader(r, req.Key(), version)
	require.NoError(c.t, err)
	require.EqualValues(c.t, 77, id)
	resp := req.NewResponse()
	require.NoError(c.t, resp.ReadFrom(r, version), "%v v%d: % x", req.Key(), version, answer)
	require.Zero(c.t, r.Remaining(), "%v v%d: bytes behind the answer", req.Key(), version)
	return resp
}

// send writes a frame (its first 4 bytes are for the size) and reads one; nil means that the broker closed instead, and a
// new connection is there for the next request.
func (c *conversation) send(frame []byte) []byte {
	c.t.Helper()
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	c.conn.SetDeadline(time.Now().Add(patience))
	_, err := c.conn.Write(frame)
	require.NoError(c.t, err)
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		var timeout net.Error
		require.False(c.t, asTimeout(err, &timeout), "no answer and no close within %v", patience)
		c.dial()
		return nil
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(c.conn, answer)
	require.NoError(c.t, err)
	return answer
}

func asTimeout(err error, target *net.Error) bool {
	e, ok := err.(net.Error)
	*target = e
	return ok && e.Timeout()
}

// The fields that a broker makes up. Everything else has to be equal.
var (
	topicIDs      = regexp.MustCompile(`"topicId":"([A-Za-z0-9_-]{22})"`)
	producerIDs   = regexp.MustCompile(`"producerId":(\d+)`)
	sessionIDs    = regexp.MustCompile(`"sessionId":([1-9]\d*)`)
	clusterIDs    = regexp.MustCompile(`"clusterId":"[^"]*"`)
	portNumbers   = regexp.MustCompile(`"port":\d+`)
	brokerEpochs  = regexp.MustCompile(`"(finalizedFeaturesEpoch)":\d+`)
	appendTimes   = regexp.MustCompile(`"logAppendTimeMs":\d{13}`)
	timeTexts     = regexp.MustCompile(`Timestamp \d+ of|within \[\d+, \d+\]`)
	quorumNumbers = regexp.MustCompile(`"(highWatermark|logEndOffset|lastFetchTimestamp|lastCaughtUpTimestamp|leaderEpoch)":\d+`)
	directoryIDs  = regexp.MustCompile(`"(replicaDirectoryId)":"([A-Za-z0-9_-]{22})"`)
	docTexts      = regexp.MustCompile(`"documentation":"(?:[^"\\]|\\.)*"`)
)

func (c *conversation) normal(k wire.Key, text []byte) string {
	s := string(text)
	named := func(kind string, re *regexp.Regexp, form string) {
		s = re.ReplaceAllStringFunc(s, func(m string) string {
			v := re.FindStringSubmatch(m)[1]
			if v == strings.Repeat("A", 22) { // the zero id is not made up
				return m
			}
			if c.names[kind+v] == "" {
				c.counts[kind]++
				c.names[kind+v] = fmt.Sprintf("%s%d", kind, c.counts[kind])
			}
			return fmt.Sprintf(form, c.names[kind+v])
		})
	}
	s = clusterIDs.ReplaceAllString(s, `"clusterId":"CLUSTER"`)
	named("UUID", topicIDs, `"topicId":"%s"`)
	named("PID", producerIDs, `"producerId":"%s"`)
	named("SESSION", sessionIDs, `"sessionId":"%s"`)
	s = portNumbers.ReplaceAllString(s, `"port":"PORT"`)
	s = brokerEpochs.ReplaceAllString(s, `"$1":"EPOCH"`)
	s = appendTimes.ReplaceAllString(s, `"logAppendTimeMs":"TIME"`)
	s = timeTexts.ReplaceAllString(s, "TIMES")
	if k == wire.KeyDescribeQuorum { // how long the metadata log is, and when it was looked at
		s = quorumNumbers.ReplaceAllString(s, `"$1":"N"`)
		s = directoryIDs.ReplaceAllString(s, `"$1":"ID"`)
	}
	s = docTexts.ReplaceAllString(s, `"documentation":"TEXT"`)
	return s
}

// ottlaAPIs are the keys that ottla lists.
var ottlaAPIs = map[int16]bool{}

func learnOttlaAPIs(t testing.TB, addr string) {
	c := newConversation(t, addr)
	req := &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", NodeId: -1}
	for _, a := range c.exchange(3, req).(*message.ApiVersionsResponse).ApiKeys {
		ottlaAPIs[a.ApiKey] = true
	}
}

// create makes a topic and remembers its id; scenarios run on a broker of their own, or under names of their own.
func (c *conversation) create(name string, partitions int32, configs ...string) {
	c.t.Helper()
	topic := message.CreatableTopic{Name: name, NumPartitions: partitions, ReplicationFactor: 1}
	for i := 0; i+1 < len(configs); i += 2 {
		topic.Configs = append(topic.Configs, message.CreatableTopicConfig{Name: configs[i], Value: &configs[i+1]})
	}
	req := message.NewCreateTopicsRequest()
	req.Topics, req.TimeoutMs = []message.CreatableTopic{topic}, 10000
	resp := c.quiet(7, req).(*message.CreateTopicsResponse)
	require.Zero(c.t, resp.Topics[0].ErrorCode, "creating %s", name)
	c.topicIDs[name] = resp.Topics[0].TopicId
	if !c.keeps {
		c.t.Cleanup(func() { c.drop(name) })
	}
	// The answer comes when the controller has committed; the leader may lag behind it, and lead an older topic of the name until then.
	eventually(c.t, name+" is led", func() bool {
		for p := range partitions {
			req := message.NewListOffsetsRequest()
			req.ReplicaId = -1
			req.Topics = []message.ListOffsetsTopic{{Name: name, Partitions: []message.ListOffsetsPartition{{PartitionIndex: p, CurrentLeaderEpoch: -1, Timestamp: -1}}}}
			byID := c.fetchRequest(13, part(name, p, 0))
			byID.MaxWaitMs = 0
			fetched := c.quiet(13, byID).(*message.FetchResponse)
			if fetched.ErrorCode != 0 || len(fetched.Responses) != 1 || fetched.Responses[0].Partitions[0].ErrorCode != 0 ||
				c.quiet(7, req).(*message.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode != 0 {
				return false
			}
		}
		return true
	})
}

// write produces one batch that has to be taken.
func (c *conversation) write(topic string, partition int32, b batch) {
	c.t.Helper()
	resp := c.quiet(13, c.produceRequest(13, topic, partition, -1, b.bytes(c.t))).(*message.ProduceResponse)
	require.Zero(c.t, resp.Responses[0].PartitionResponses[0].ErrorCode)
}

func (c *conversation) drop(name string) {
	req := message.NewDeleteTopicsRequest()
	req.TimeoutMs = 10000
	req.Topics = []message.DeleteTopicState{{Name: &name}}
	c.exchange(6, req)
}

// produceRequest is a request of one batch for a partition, by name or, from version 13, by id.
func (c *conversation) produceRequest(version int16, topic string, partition int32, acks int16, batch []byte) *message.ProduceRequest {
	req := message.NewProduceRequest()
	req.Acks, req.TimeoutMs = acks, 5000
	data := message.TopicProduceData{PartitionData: []message.PartitionProduceData{{Index: partition, Records: batch}}}
	if version >= 13 {
		data.TopicId = c.topicIDs[topic]
	} else {
		data.Name = topic
	}
	req.TopicData = []message.TopicProduceData{data}
	return req
}

// fetchPart is one partition of a fetch.
type fetchPart struct {
	topic              string
	partition          int32
	offset             int64
	maxBytes           int32
	epoch, lastFetched int32
}

// fetchRequest is a fetch of some partitions that waits at most 200 ms for a byte; a test changes what it is about.
func (c *conversation) fetchRequest(version int16, parts ...fetchPart) *message.FetchRequest {
	req := message.NewFetchRequest()
	req.MaxWaitMs, req.MinBytes, req.MaxBytes, req.SessionEpoch = 200, 1, 50<<20, -1
	for _, p := range parts {
		part := message.FetchRequestFetchPartition{Partition: p.partition, CurrentLeaderEpoch: p.epoch, FetchOffset: p.offset,
			LastFetchedEpoch: p.lastFetched, LogStartOffset: -1, PartitionMaxBytes: p.maxBytes}
		part.HighWatermark = math.MaxInt64
		topic := message.FetchRequestFetchTopic{Partitions: []message.FetchRequestFetchPartition{part}}
		if version >= 13 {
			topic.TopicId = c.topicIDs[p.topic]
		} else {
			topic.Topic = p.topic
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

// part is a partition fetched from an offset, with everything else as clients have it.
func part(topic string, partition int32, offset int64) fetchPart {
	return fetchPart{topic, partition, offset, 1 << 20, -1, -1}
}

// requireSameTranscripts fails with the lines that differ.
func requireSameTranscripts(t *testing.T, kafka, ottla []string) {
	t.Helper()
	for i := range min(len(kafka), len(ottla)) {
		if kafka[i] != ottla[i] {
			t.Errorf("Apache Kafka and ottla answer differently\nkafka: %s\nottla: %s", pretty(kafka[i]), pretty(ottla[i]))
		}
	}
	require.Equal(t, len(kafka), len(ottla), "lines of the transcripts")
}

func pretty(line string) string {
	head, text, _ := strings.Cut(line, "{")
	var b bytes.Buffer
	if json.Indent(&b, []byte("{"+text), "", " ") != nil || b.Len() > 6000 {
		return line
	}
	return head + b.String()
}

// batch is what a scenario says of one record batch; the zero value is an idempotent-less batch with timestamps from
// epoch on, which both brokers of a run share.
type batch struct {
	records []record.Record
	stamp   *record.Stamp
	codec   compress.Codec
}

// epoch is the first timestamp of all batches: the same for both brokers, and recent, so that retention leaves it alone.
var epoch = time.Now().Add(-time.Hour).Truncate(time.Second).UnixMilli()

// values makes records without keys, one millisecond apart.
func values(list ...string) (records []record.Record) {
	for i, v := range list {
		records = append(records, record.Record{Timestamp: epoch + int64(i), Value: []byte(v)})
	}
	return records
}

// bytes encodes the batch.
func (b batch) bytes(t testing.TB) []byte {
	t.Helper()
	builder := record.NewBuilder(nil)
	for _, r := range b.records {
		builder.Append(r.Timestamp, r.Key, r.Value, nil)
	}
	stamp := record.NoProducer()
	if b.stamp != nil {
		stamp = *b.stamp
	}
	return sealed(t, builder, stamp, b.codec)
}

func sealed(t testing.TB, b *record.Builder, stamp record.Stamp, codec compress.Codec) []byte {
	t.Helper()
	if codec == compress.None {
		return b.Seal(stamp)
	}
	c, err := compress.NewCompressor(codec, compress.DefaultLevel)
	require.NoError(t, err)
	return b.SealCompressed(nil, stamp, c)
}
