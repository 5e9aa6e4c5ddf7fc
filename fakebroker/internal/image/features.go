package image

import "fmt"

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

// ChosenLevels are DefaultLevels with some levels chosen by name. A feature of level 0 is not there at all, as in Apache
// Kafka's format. metadata.version and kraft.version are not to be chosen: this broker writes the newest records only.
func ChosenLevels(chosen map[string]int16) ([]FeatureRange, error) {
	ranges := make(map[string]FeatureRange)
	for _, f := range SupportedFeatures() {
		ranges[f.Name] = f
	}
	for name, level := range chosen {
		switch f, known := ranges[name]; {
		case !known:
			return nil, fmt.Errorf("feature %q is not known", name)
		case name == MetadataFeature || name == KRaftFeature:
			return nil, fmt.Errorf("the level of feature %s cannot be chosen", name)
		case level < f.Min || level > f.Max:
			return nil, fmt.Errorf("feature %s has levels %d to %d, not %d", name, f.Min, f.Max, level)
		}
	}
	var levels []FeatureRange
	for _, l := range DefaultLevels() {
		if level, ok := chosen[l.Name]; ok {
			l.Min, l.Max = level, level
		}
		if l.Max > 0 {
			levels = append(levels, l)
		}
	}
	return levels, nil
}

// KRaftFeature is the one feature whose level the quorum keeps in its own control records.
const KRaftFeature = "kraft.version"

// ELRFeature switches eligible leader replicas on (KIP-966).
const ELRFeature = "eligible.leader.replicas.version"
