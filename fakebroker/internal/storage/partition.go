package storage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/wire"
)

// MetadataTopic is the topic of the KRaft log. Its folder lies among the
// others, but the Manager leaves it to the quorum (see OpenLog).
const MetadataTopic = "__cluster_metadata"

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns topic-partition, which is also the name of the log's folder.
func (p TopicPartition) String() string {
	return p.Topic + "-" + strconv.Itoa(int(p.Partition))
}

// Suffixes of the folder of a log that is not in use.
const (
	deleteDirSuffix = "-delete" // waits to be removed
	futureDirSuffix = "-future" // being copied to this log dir
	strayDirSuffix  = "-stray"  // belongs to no known topic
)

// maxDirName is Kafka's limit for the name of a folder that waits for removal.
const maxDirName = 255

// deleteDirName returns topic-partition.uniqueid-delete; a long topic name is
// shortened, as the folder's topic is of no interest any more.
func deleteDirName(p TopicPartition, unique wire.UUID) string {
	suffix := fmt.Sprintf("-%d.%x%s", p.Partition, unique[:], deleteDirSuffix)
	topic := p.Topic
	if len(topic)+len(suffix) > maxDirName {
		topic = topic[:maxDirName-len(suffix)]
	}
	return topic + suffix
}

// parseDirName returns the partition that a folder's name stands for.
func parseDirName(name string) (TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return TopicPartition{}, false
	}
	digits := name[i+1:]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return TopicPartition{}, false
	}
	return TopicPartition{Topic: name[:i], Partition: int32(n)}, true
}
