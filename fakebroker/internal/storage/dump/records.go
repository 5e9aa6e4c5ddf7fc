package dump

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// decoder turns key and value of a record into text.
type decoder func(key, value []byte) (keyText, valueText string)

// decoderFor chooses by the folder that a file lies in.
func decoderFor(name string) decoder {
	dir := filepath.Base(filepath.Dir(name))
	topic := dir
	if i := strings.LastIndexByte(dir, '-'); i >= 0 {
		topic = dir[:i]
	}
	switch topic {
	case "__cluster_metadata":
		return metadata
	case logrecord.GroupLog.String():
		return coordinator(logrecord.GroupLog)
	case logrecord.TransactionLog.String():
		return coordinator(logrecord.TransactionLog)
	case logrecord.ShareLog.String():
		return coordinator(logrecord.ShareLog)
	default:
		return plain
	}
}

// plain takes bytes for text, as Kafka does; what is no text is replaced.
func plain(key, value []byte) (string, string) { return text(key), text(value) }

func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}

// metadata decodes the records of the metadata log.
func metadata(_, value []byte) (string, string) {
	rec, version, err := logrecord.ReadFramed(value)
	if err != nil {
		return "", unreadable(value, err)
	}
	name := reflect.TypeOf(rec).Elem().Name()
	data, err := wirejson.Append(nil, rec, version)
	if err != nil {
		return "", unreadable(value, err)
	}
	return "", fmt.Sprintf(`{"type":"%s","version":%d,"data":%s}`, upperSnake(name), version, data)
}

// unreadable stands for a value that cannot be decoded.
func unreadable(value []byte, err error) string {
	return fmt.Sprintf("Error at %s, skipping: %v", base64.StdEncoding.EncodeToString(value), err)
}

// upperSnake turns FeatureLevelRecord into FEATURE_LEVEL_RECORD.
func upperSnake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// coordinator decodes the records of a coordinator's log.
func coordinator(log logrecord.Log) decoder {
	return func(key, value []byte) (string, string) {
		k, err := logrecord.ReadKey(log, key)
		if err != nil {
			return unreadable(key, err), ""
		}
		data, err := wirejson.Append(nil, k, 0)
		if err != nil {
			return unreadable(key, err), ""
		}
		keyText := fmt.Sprintf(`{"type":"%d","data":%s}`, k.APIKey(), data)
		if value == nil {
			return keyText, "<DELETE>"
		}
		v, version, err := logrecord.ReadValue(log, k.APIKey(), value)
		if err == nil {
			data, err = valueJSON(v, version)
		}
		if err != nil {
			return keyText, unreadable(value, err)
		}
		return keyText, fmt.Sprintf(`{"version":"%d","data":%s}`, version, data)
	}
}

// controlText prints a control record.
func controlText(r *record.Record) string {
	_, kind, err := record.ParseControlKey(r.Key)
	if err != nil {
		return "controlType: " + unreadable(r.Key, err)
	}
	switch kind {
	case record.ControlAbort, record.ControlCommit:
		m, err := record.ParseEndTxn(r.Key, r.Value)
		if err != nil {
			return "endTxnMarker: " + unreadable(r.Value, err)
		}
		return fmt.Sprintf("endTxnMarker: %s coordinatorEpoch: %d", kind, m.CoordinatorEpoch)
	case record.ControlLeaderChange:
		return "LeaderChange: " + kraftJSON(message.NewLeaderChangeMessage(), r.Value)
	case record.ControlSnapshotHeader:
		return "SnapshotHeader " + kraftJSON(message.NewSnapshotHeaderRecord(), r.Value)
	case record.ControlSnapshotFooter:
		return "SnapshotFooter " + kraftJSON(message.NewSnapshotFooterRecord(), r.Value)
	case record.ControlKRaftVersion:
		return "KRaftVersion " + kraftJSON(message.NewKRaftVersionRecord(), r.Value)
	case record.ControlKRaftVoters:
		return "KRaftVoters " + kraftJSON(message.NewVotersRecord(), r.Value)
	default:
		return fmt.Sprintf("controlType: %s(%d)", kind, int16(kind))
	}
}

// kraftJSON prints the value of one of KRaft's control records. Its version is
// its first field as well.
func kraftJSON(m wire.Message, value []byte) string {
	version := wire.NewReader(value).Int16()
	err := m.ReadFrom(wire.NewReader(value), version)
	if err != nil {
		return unreadable(value, err)
	}
	data, err := wirejson.Append(nil, m, version)
	if err != nil {
		return unreadable(value, err)
	}
	return string(data)
}
