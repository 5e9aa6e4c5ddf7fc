package fakebroker_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// madeUp is the written list of the fields whose values differ between two runs of a broker, and how they are compared.
// Every other field of every answer has to be equal.
var madeUp = map[string]func(m *mapping, want, got any) bool{
	"topicId":                (*mapping).sameTopic,    // random: ours stands for theirs from the first time on; zero is none
	"producerId":             (*mapping).sameProducer, // from blocks; -1 is none
	"sessionId":              (*mapping).sameSession,  // random; 0 is none
	"memberId":               (*mapping).sameMember,   // random; "" is none
	"leader":                 (*mapping).sameMember,   // of a group
	"subscribedTopicNames":   (*mapping).sameSet,      // in the order of a Java hash set
	"clusterId":              (*mapping).present,      // random
	"host":                   (*mapping).present,      // where the broker was
	"port":                   (*mapping).present,      // likewise
	"finalizedFeaturesEpoch": (*mapping).present,      // offset in the metadata log
	"logAppendTimeMs":        (*mapping).present,      // -1, or the broker's clock
	"transactionStartTimeMs": (*mapping).present,      // likewise
	"errorMessage":           (*mapping).present,      // null, or words
	"batchIndexErrorMessage": (*mapping).present,      // likewise
	"records":                (*mapping).sameRecords,  // batch by batch: the clock is in those of LogAppendTime topics
}

// timing are answers of the recording that tell a client to come back later: Apache Kafka 4.4 fetches its first block of
// producer ids, makes an internal topic, or writes markers meanwhile. We answer when we are ready instead.
var timing = map[string]bool{"14": true, "15": true, "51": true}

// orderedBy names the fields that tell the elements of an array apart. Apache Kafka answers topics, partitions, configs
// and features in the order of a Java hash map, so arrays are compared in the order of these fields. Elements without
// any of them (topics named by id) are compared in the order they came.
var orderedBy = []string{"apiKey", "name", "topicName", "topic", "resourceType", "resourceName", "partitionIndex", "index", "partition", "nodeId", "brokerId", "groupId", "memberId"}

// mapping knows which of our made-up values stands for which of the recording's.
type mapping struct {
	ours map[string]string // recorded value -> ours
}

func newMapping() *mapping { return &mapping{ours: make(map[string]string)} }

func (m *mapping) sameTopic(want, got any) bool {
	return m.same("topicId", wire.UUID{}.String(), want, got)
}
func (m *mapping) sameSession(want, got any) bool { return m.same("sessionId", "0", want, got) }

// sameProducer takes 0 on both sides for none, too: it is what an answer about an unknown transactional id has.
func (m *mapping) sameProducer(want, got any) bool {
	return fmt.Sprint(want) == "0" && fmt.Sprint(got) == "0" || m.same("producerId", "-1", want, got)
}

func (m *mapping) sameMember(want, got any) bool { return m.same("memberId", "", want, got) }

// same learns which of our values stands for a recorded one, and holds to it.
func (m *mapping) same(kind, none string, want, got any) bool {
	w, g := fmt.Sprint(want), fmt.Sprint(got)
	if w == none || g == none {
		return w == g
	}
	known, ok := m.ours[kind+w]
	if !ok {
		m.ours[kind+w] = g
		return true
	}
	return known == g
}

// sameSet compares lists of texts without their order.
func (m *mapping) sameSet(want, got any) bool {
	texts := func(v any) []string {
		all := strings.Fields(strings.Trim(fmt.Sprint(v), "[]"))
		slices.Sort(all)
		return all
	}
	return slices.Equal(texts(want), texts(got))
}

// present holds that both are there or neither is.
func (m *mapping) present(want, got any) bool {
	for _, none := range []string{"-1", "<nil>", ""} {
		if (fmt.Sprint(want) == none) != (fmt.Sprint(got) == none) {
			return false
		}
	}
	return true
}

func (m *mapping) sameRecords(want, got any) bool {
	if want == nil || got == nil {
		return want == got
	}
	w, g := decodeBase64(want), decodeBase64(got)
	for len(w) > 0 && len(g) > 0 {
		wb, wr, err1 := record.Next(w)
		gb, gr, err2 := record.Next(g)
		if err1 != nil || err2 != nil {
			return false
		}
		if !sameBatch(wb, gb) {
			return false
		}
		w, g = wr, gr
	}
	return len(w) == 0 && len(g) == 0
}

// sameBatch compares two batches; with LogAppendTime and in markers their clocks may differ, and a batch that the broker
// compressed itself may have other bytes.
func sameBatch(want, got []byte) bool {
	w, err1 := record.ParseHeader(want)
	g, err2 := record.ParseHeader(got)
	if err1 != nil || err2 != nil {
		return false
	}
	if w.LogAppendTime() {
		w.MaxTimestamp, w.CRC = g.MaxTimestamp, g.CRC
	}
	if w.Control() { // a marker has the broker's clock
		w.BaseTimestamp, w.MaxTimestamp, w.CRC = g.BaseTimestamp, g.MaxTimestamp, g.CRC
	}
	if w.ProducerID >= 0 && g.ProducerID >= 0 {
		w.ProducerID, w.CRC = g.ProducerID, g.CRC
	}
	return w == g && string(want[record.HeaderSize:]) == string(got[record.HeaderSize:])
}

func decodeBase64(v any) []byte {
	b, _ := base64.StdEncoding.DecodeString(v.(string))
	return b
}

// request puts our made-up values into a recorded request.
func (m *mapping) request(t *testing.T, raw []byte, key wire.Key, version int16, req message.Request) []byte {
	tree := asTree(t, req, version)
	if !m.replace(tree) {
		return raw
	}
	text, err := json.Marshal(tree)
	require.NoError(t, err)
	require.NoError(t, wirejson.Decode(text, req))
	rd := wire.NewReader(raw[4:])
	h, err := wire.ReadRequestHeader(rd)
	require.NoError(t, err)
	out := wire.AppendRequestHeader(make([]byte, 4), key, version, h.CorrelationID, h.ClientID)
	out, err = req.AppendTo(out, version)
	require.NoError(t, err)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

func (m *mapping) replace(v any) (changed bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			switch name {
			case "topicId":
				if ours, ok := m.ours[name+field.(string)]; ok {
					v[name], changed = ours, true
				}
			case "memberId":
				if ours, ok := m.ours[name+fmt.Sprint(field)]; ok {
					v[name], changed = ours, true
				}
			case "producerId", "sessionId", "v3AndBelowProducerId":
				kind := strings.Replace(name, "v3AndBelowP", "p", 1)
				if ours, ok := m.ours[kind+fmt.Sprint(field)]; ok {
					v[name], changed = json.Number(ours), true
				}
			case "producerIdFilters":
				for i, id := range field.([]any) {
					if ours, ok := m.ours["producerId"+fmt.Sprint(id)]; ok {
						field.([]any)[i], changed = json.Number(ours), true
					}
				}
			case "records":
				if text, ok := field.(string); ok {
					v[name] = m.replaceProducer(text)
					changed = changed || v[name] != text
				}
			default:
				changed = m.replace(field) || changed
			}
		}
	case []any:
		for _, e := range v {
			changed = m.replace(e) || changed
		}
	}
	return changed
}

// replaceProducer puts our producer id into a batch, with a new checksum.
func (m *mapping) replaceProducer(text string) string {
	b := decodeBase64(text)
	h, err := record.ParseHeader(b)
	if err != nil || h.ProducerID < 0 {
		return text
	}
	ours, ok := m.ours["producerId"+fmt.Sprint(h.ProducerID)]
	if !ok {
		return text
	}
	_, err = fmt.Sscan(ours, &h.ProducerID)
	if err != nil {
		return text
	}
	h.Put(b)
	h.CRC = record.Checksum(b)
	h.Put(b)
	return base64.StdEncoding.EncodeToString(b)
}

// compare walks two answers and returns where they differ.
func (m *mapping) compare(key wire.Key, want, got map[string]any) []string {
	if key == wire.KeyApiVersions {
		want["apiKeys"] = onlyImplemented(want["apiKeys"].([]any), got["apiKeys"].([]any))
	}
	if key == wire.KeyListConfigResources {
		want["configResources"] = withoutInternal(want["configResources"].([]any))
		got["configResources"] = withoutInternal(got["configResources"].([]any))
	}
	if code, ok := want["errorCode"]; ok && timing[fmt.Sprint(code)] && fmt.Sprint(got["errorCode"]) == "0" {
		return nil
	}
	var diffs []string
	m.walk("", "", want, got, &diffs)
	return diffs
}

// withoutInternal drops the internal topics: the parts of the recording about share groups, which made theirs, are not
// replayed yet.
func withoutInternal(listed []any) []any {
	return slices.DeleteFunc(listed, func(r any) bool {
		return strings.HasPrefix(fmt.Sprint(r.(map[string]any)["resourceName"]), "__")
	})
}

// onlyImplemented drops the APIs that this broker does not list: it has no share and streams groups yet.
func onlyImplemented(want, got []any) []any {
	ours := make(map[string]bool)
	for _, a := range got {
		ours[fmt.Sprint(a.(map[string]any)["apiKey"])] = true
	}
	return slices.DeleteFunc(want, func(a any) bool { return !ours[fmt.Sprint(a.(map[string]any)["apiKey"])] })
}

func (m *mapping) walk(path, name string, want, got any, diffs *[]string) {
	if same := madeUp[name]; same != nil {
		if !same(m, want, got) {
			*diffs = append(*diffs, fmt.Sprintf("%s: Kafka %.400v, we %.400v", path, want, got))
		}
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			*diffs = append(*diffs, fmt.Sprintf("%s: Kafka %v, we %v", path, want, got))
			return
		}
		names := slices.Sorted(maps.Keys(w))
		for name := range g {
			if _, ok := w[name]; !ok {
				names = append(names, name)
			}
		}
		for _, name := range names {
			m.walk(path+"."+name, name, w[name], g[name], diffs)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			*diffs = append(*diffs, fmt.Sprintf("%s: Kafka has %d, we %d:\n      %.1500v\n      %.1500v", path, len(w), len(g), want, got))
			return
		}
		w, g = sorted(m.byTopic(w, g))
		for i := range w {
			m.walk(fmt.Sprintf("%s[%d]", path, i), "", w[i], g[i], diffs)
		}
	default:
		if name == "errorCode" && timing[fmt.Sprint(want)] && fmt.Sprint(got) == "0" {
			return // of one of several
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			*diffs = append(*diffs, fmt.Sprintf("%s: Kafka %v, we %v", path, want, got))
		}
	}
}

// byTopic puts the elements of g into the order of the topic ids in w, when all of these stand for one of ours.
func (m *mapping) byTopic(w, g []any) (_, _ []any) {
	ordered := make([]any, 0, len(g))
	for _, e := range w {
		fields, _ := e.(map[string]any)
		ours, ok := m.ours[fmt.Sprint("topicId", fields["topicId"])]
		i := slices.IndexFunc(g, func(e any) bool {
			fields, _ := e.(map[string]any)
			return fmt.Sprint(fields["topicId"]) == ours
		})
		if !ok || i < 0 {
			return w, g
		}
		ordered = append(ordered, g[i])
	}
	return w, ordered
}

// sorted orders two arrays of objects by the fields that tell their elements apart.
func sorted(a, b []any) (_, _ []any) { return sortedOne(a), sortedOne(b) }

func sortedOne(a []any) []any {
	key := func(v any) string {
		fields, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		var key string
		for _, name := range orderedBy {
			if f, ok := fields[name]; ok {
				key += fmt.Sprintf("%v\x00", f)
			}
		}
		return key
	}
	return slices.SortedStableFunc(slices.Values(a), func(x, y any) int { return strings.Compare(key(x), key(y)) })
}
