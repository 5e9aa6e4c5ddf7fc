package image

import (
	"maps"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

func (d *Delta) editConfigs() {
	if d.configs == nil {
		d.configs = d.img.configs.Edit()
	}
	if d.changedConfigs == nil {
		d.changedConfigs = make(map[config.Resource]bool)
	}
}

// config sets one config, or removes it when the value is null. The map of a resource is copied once per delta.
func (d *Delta) config(r *logrecord.ConfigRecord) error {
	d.editConfigs()
	resource := config.Resource{Type: config.ResourceType(r.ResourceType), Name: r.ResourceName}
	values, _ := d.configs.Get(resource)
	if !d.changedConfigs[resource] {
		values = maps.Clone(values)
		d.changedConfigs[resource] = true
	}
	if values == nil {
		values = make(map[string]string)
	}
	if r.Value == nil {
		delete(values, r.Name)
	} else {
		values[r.Name] = *r.Value
	}
	if len(values) == 0 {
		d.configs.Delete(resource)
		return nil
	}
	d.configs.Set(resource, values)
	return nil
}

func (d *Delta) removeConfigs(r config.Resource) {
	d.editConfigs()
	if d.configs.Delete(r) {
		d.changedConfigs[r] = true
	}
}

// featureLevel finalises a level; 0 takes the feature back, except that metadata.version never is 0.
func (d *Delta) featureLevel(r *logrecord.FeatureLevelRecord) error {
	if !d.ownFeatures {
		d.img.features, d.ownFeatures = maps.Clone(d.img.features), true
	}
	if d.img.features == nil {
		d.img.features = make(map[string]int16)
	}
	d.img.featuresEpoch = d.img.offset
	if r.FeatureLevel == 0 {
		delete(d.img.features, r.Name)
		return nil
	}
	d.img.features[r.Name] = r.FeatureLevel
	return nil
}
