package machine

import "github.com/ottla-kafka/ottla/wire/message"

// Features are the levels of a cluster's features that are in force, as one broker's ApiVersions answer has them
// (KIP-584).
type Features struct {
	Epoch  int64 // grows with each change; -1 from brokers that tell of no features
	levels map[string]int16
}

// NewFeatures takes an answer.
func NewFeatures(resp *message.ApiVersionsResponse) *Features {
	f := &Features{Epoch: resp.FinalizedFeaturesEpoch, levels: make(map[string]int16, len(resp.FinalizedFeatures))}
	for _, x := range resp.FinalizedFeatures {
		f.levels[x.Name] = x.MaxVersionLevel
	}
	return f
}

// Level is the level of a feature; 0 stands for one that is off or not known.
func (f *Features) Level(name string) int16 { return f.levels[name] }
