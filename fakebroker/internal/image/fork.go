package image

import "maps"

// fork returns a delta that starts with everything d holds, from the same base, and can be dropped without a trace: a
// metadata transaction. d must not be applied to any more if the fork is kept.
func (d *Delta) fork() *Delta {
	img := *d.Image()
	f := &Delta{base: d.base, img: &img}
	// Nothing of the fork's image is owned: whatever it changes is copied first. The lists of changes go along.
	f.changedBrokers = maps.Clone(d.changedBrokers)
	f.changedConfigs = maps.Clone(d.changedConfigs)
	f.changedTopics = maps.Clone(d.changedTopics)
	for id := range f.changedTopics {
		f.changedTopics[id] = false
	}
	for r := range f.changedConfigs {
		f.changedConfigs[r] = false
	}
	f.featuresSeen = d.FeaturesChanged()
	return f
}
