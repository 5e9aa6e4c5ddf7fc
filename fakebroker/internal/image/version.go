package image

// MetadataVersion is the level of the feature metadata.version: which records and record versions the whole cluster
// understands. This broker writes what Apache Kafka 4.4 writes at the same level.
type MetadataVersion int16

// The levels at which something that we write changes.
const (
	MetadataVersionMin    MetadataVersion = 7  // 3.3-IV3, the oldest that Apache Kafka 4 starts on
	MetadataVersion34IV0  MetadataVersion = 8  // broker registration says whether the broker migrates
	MetadataVersion36IV1  MetadataVersion = 13 // metadata transactions
	MetadataVersion37IV0  MetadataVersion = 15 // controllers register
	MetadataVersion37IV2  MetadataVersion = 17 // directories of replicas
	MetadataVersion40IV1  MetadataVersion = 23 // eligible leader replicas
	MetadataVersion43IV0  MetadataVersion = 30 // cordoned log dirs
	MetadataVersionLatest MetadataVersion = 33 // 4.4-IV2
)

// MetadataFeature is the name of the feature whose level is the MetadataVersion.
const MetadataFeature = "metadata.version"

// MetadataVersion returns the finalised level; the oldest one while nothing is finalised.
func (i *Image) MetadataVersion() MetadataVersion {
	return max(MetadataVersion(i.Feature(MetadataFeature)), MetadataVersionMin)
}

// PartitionRecord is the version of PartitionRecord and PartitionChangeRecord.
func (v MetadataVersion) PartitionRecord() int16 {
	switch {
	case v >= MetadataVersion40IV1:
		return 2
	case v >= MetadataVersion37IV2:
		return 1
	}
	return 0
}

// RegisterBroker is the version of RegisterBrokerRecord.
func (v MetadataVersion) RegisterBroker() int16 {
	switch {
	case v >= MetadataVersion43IV0:
		return 4
	case v >= MetadataVersion37IV2:
		return 3
	case v >= MetadataVersion34IV0:
		return 2
	}
	return 1
}

// Transactions reports whether changes of several batches may be wrapped in Begin and EndTransaction.
func (v MetadataVersion) Transactions() bool { return v >= MetadataVersion36IV1 }

// Controllers reports whether controllers register themselves.
func (v MetadataVersion) Controllers() bool { return v >= MetadataVersion37IV0 }

// CordonedDirs reports whether brokers report cordoned log dirs.
func (v MetadataVersion) CordonedDirs() bool { return v >= MetadataVersion43IV0 }
