package storage

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

// Files of a log dir and of a log that name things. All are text.
//
//	meta.properties (KIP-631, KIP-858)   partition.metadata (KIP-516)
//	#                                    version: 0
//	#Sun Nov 29 23:35:17 UTC 2026        topic_id: PBds9qtSR3iGkbcb8C2etQ
//	node.id=1
//	directory.id=K8DxqwoeSvewdsbHSHa1MA  .kafka_cleanshutdown (KIP-966)
//	version=1                            {"version":0,"brokerEpoch":13}
//	cluster.id=AAECAwQFBgcICQoLDA0ODw

// Names of the files of a log dir.
const (
	MetaPropertiesFile             = "meta.properties"
	CleanShutdownFile              = ".kafka_cleanshutdown"
	LockFile                       = ".lock"
	RecoveryPointCheckpoint        = "recovery-point-offset-checkpoint"
	HighWatermarkCheckpoint        = "replication-offset-checkpoint"
	LogStartCheckpoint             = "log-start-offset-checkpoint"
	CleanerCheckpoint              = "cleaner-offset-checkpoint"
	metaPropertiesVersion          = 1
	partitionMetadataVersion       = 0
	cleanShutdownVersion           = 0
	javaDate                       = "Mon Jan 02 15:04:05 MST 2006"
	unknownBrokerEpoch             = -1
	maxSmallFile                   = 1 << 20 // no such file is nearly as long
	unknownNodeID            int32 = -1
)

// MetaProperties is the content of meta.properties.
type MetaProperties struct {
	NodeID      int32 // -1 when the file does not say
	ClusterID   string
	DirectoryID wire.UUID // zero when the file does not say
}

// AppendMetaProperties appends the file's text; now goes into its comment.
func AppendMetaProperties(dst []byte, p MetaProperties, now time.Time) []byte {
	dst = fmt.Appendf(dst, "#\n#%s\n", now.UTC().Format(javaDate))
	dst = fmt.Appendf(dst, "node.id=%d\ndirectory.id=%s\nversion=%d\ncluster.id=%s\n",
		p.NodeID, p.DirectoryID, metaPropertiesVersion, p.ClusterID)
	return dst
}

// ParseMetaProperties reads version 0 (before KRaft: broker.id) and version 1.
// Unknown keys are ignored, as Kafka does.
func ParseMetaProperties(b []byte) (MetaProperties, error) {
	values, err := parseProperties(b)
	if err != nil {
		return MetaProperties{}, err
	}
	p := MetaProperties{NodeID: unknownNodeID, ClusterID: values["cluster.id"]}
	idKey := "node.id"
	switch v := values["version"]; v {
	case "0":
		idKey = "broker.id"
	case "1":
		if values[idKey] == "" || p.ClusterID == "" {
			return MetaProperties{}, fmt.Errorf("storage: %s: node.id and cluster.id are required in version 1", MetaPropertiesFile)
		}
	default:
		return MetaProperties{}, fmt.Errorf("storage: %s: version %q, only 0 and 1 are known", MetaPropertiesFile, v)
	}
	if s := values[idKey]; s != "" {
		id, err := strconv.ParseInt(s, 10, 32)
		if err != nil || id < 0 {
			return MetaProperties{}, fmt.Errorf("storage: %s: %s=%q is no node id", MetaPropertiesFile, idKey, s)
		}
		p.NodeID = int32(id)
	}
	if s := values["directory.id"]; s != "" {
		if p.DirectoryID, err = wire.ParseUUID(s); err != nil {
			return MetaProperties{}, fmt.Errorf("storage: %s: directory.id: %w", MetaPropertiesFile, err)
		}
	}
	return p, nil
}

// parseProperties reads what of Java's properties format such files use:
// comments, key and value parted by = or :, backslash escapes; no
// continuation lines.
func parseProperties(b []byte) (map[string]string, error) {
	if len(b) > maxSmallFile {
		return nil, fmt.Errorf("storage: %s has %d bytes", MetaPropertiesFile, len(b))
	}
	values := make(map[string]string)
	for line := range strings.SplitSeq(string(b), "\n") {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		i := strings.IndexAny(line, "=:")
		if i < 0 {
			return nil, fmt.Errorf("storage: %s: line %q has no value", MetaPropertiesFile, line)
		}
		key := strings.TrimRight(line[:i], " \t\f")
		values[key] = strings.ReplaceAll(strings.TrimLeft(line[i+1:], " \t\f"), `\`, "")
	}
	return values, nil
}

// AppendPartitionMetadata appends the text of partition.metadata.
func AppendPartitionMetadata(dst []byte, topicID wire.UUID) []byte {
	dst = strconv.AppendInt(append(dst, "version: "...), partitionMetadataVersion, 10)
	return append(append(dst, "\ntopic_id: "...), topicID.String()...)
}

// ParsePartitionMetadata reads the topic id from partition.metadata.
func ParsePartitionMetadata(b []byte) (wire.UUID, error) {
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) != 2 {
		return wire.UUID{}, fmt.Errorf("storage: %s: %d lines, two are expected", partitionMetadataFile, len(lines))
	}
	version, ok := strings.CutPrefix(lines[0], "version: ")
	if n, err := strconv.Atoi(version); !ok || err != nil || n != partitionMetadataVersion {
		return wire.UUID{}, fmt.Errorf("storage: %s: first line is %q", partitionMetadataFile, lines[0])
	}
	text, ok := strings.CutPrefix(lines[1], "topic_id: ")
	if !ok {
		return wire.UUID{}, fmt.Errorf("storage: %s: second line is %q", partitionMetadataFile, lines[1])
	}
	id, err := wire.ParseUUID(text)
	if err == nil && id.IsZero() {
		err = fmt.Errorf("topic id is zero")
	}
	if err != nil {
		return wire.UUID{}, fmt.Errorf("storage: %s: %w", partitionMetadataFile, err)
	}
	return id, nil
}

// cleanShutdown is the content of .kafka_cleanshutdown.
type cleanShutdown struct {
	Version     int   `json:"version"`
	BrokerEpoch int64 `json:"brokerEpoch"`
}

func appendCleanShutdown(dst []byte, brokerEpoch int64) []byte {
	return fmt.Appendf(dst, `{"version":%d,"brokerEpoch":%d}`, cleanShutdownVersion, brokerEpoch)
}

// parseCleanShutdown returns the broker epoch of the last clean stop. The
// file's being there is what counts; an unreadable one has no epoch.
func parseCleanShutdown(b []byte) int64 {
	c := cleanShutdown{BrokerEpoch: unknownBrokerEpoch}
	if err := json.Unmarshal(b, &c); err != nil || c.Version != cleanShutdownVersion {
		return unknownBrokerEpoch
	}
	return c.BrokerEpoch
}
