package image

// SupportedFeatures returns the range of levels of each feature that this broker supports, by name: those of Apache Kafka
// 4.4.0. They are what brokers and controllers register with and what ApiVersions lists.
func SupportedFeatures() []FeatureRange {
	return []FeatureRange{
		{"eligible.leader.replicas.version", 0, 1},
		{"group.version", 0, 1},
		{"kraft.version", 0, 1},
		{MetadataFeature, int16(MetadataVersionMin), int16(MetadataVersionLatest)},
		{"share.version", 0, 2},
		{"streams.version", 0, 1},
		{"transaction.version", 0, 2},
	}
}

// DefaultLevels are the levels that a new cluster is formatted with, in the order in which Apache Kafka writes them.
func DefaultLevels() []FeatureRange {
	levels := []FeatureRange{{MetadataFeature, int16(MetadataVersionLatest), int16(MetadataVersionLatest)}}
	for _, f := range SupportedFeatures() {
		if f.Name != MetadataFeature && f.Name != KRaftFeature {
			levels = append(levels, FeatureRange{f.Name, f.Max, f.Max})
		}
	}
	return levels
}

// KRaftFeature is the one feature whose level the quorum keeps in its own control records.
const KRaftFeature = "kraft.version"

// ELRFeature switches eligible leader replicas on (KIP-966).
const ELRFeature = "eligible.leader.replicas.version"
