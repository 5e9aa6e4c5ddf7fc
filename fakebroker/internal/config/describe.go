package config

import (
	"maps"
	"slices"
	"strings"
)

// Description is one line of DescribeConfigs: a config, its value in effect and the layers it was found in.
type Description struct {
	Key       *Key // nil: a name that is in no table (a plugin's)
	Name      string
	Value     *string // nil: unset, or withheld because it is sensitive
	ReadOnly  bool
	Sensitive bool
	Source    Source
	Synonyms  []Synonym // in order of precedence: the first one set is in effect
}

// Synonym is a value of the same config, or of one that stands in for it, in one layer.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Type is the type that DescribeConfigs answers, 0 for an unknown config.
func (d *Description) Type() Type {
	if d.Key == nil {
		return 0
	}
	return d.Key.Type
}

// Documentation is one factual sentence about the config; Apache Kafka's own texts are not reproduced here.
func (d *Description) Documentation() string {
	if d.Key == nil {
		return ""
	}
	k := d.Key
	var b strings.Builder
	b.WriteString(k.Type.String() + ", importance " + strings.ToLower(k.Importance))
	switch {
	case k.Required:
		b.WriteString(", required")
	case k.Default == nil:
		b.WriteString(", default null")
	default:
		b.WriteString(", default " + *k.Default)
	}
	if k.ValidValues != "" {
		b.WriteString(", valid values " + k.ValidValues)
	}
	if k.BrokerSynonym != "" {
		b.WriteString(", broker config " + k.BrokerSynonym)
	}
	return b.String() + "."
}

// Only is a filter of config names: nil lets all pass.
type Only map[string]bool

// OnlyNames returns the filter that lets these names pass; nil, and an empty list too, let all pass.
func OnlyNames(names []string) Only {
	if len(names) == 0 {
		return nil
	}
	o := make(Only, len(names))
	for _, n := range names {
		o[n] = true
	}
	return o
}

func (o Only) lets(name string) bool { return o == nil || o[name] }

// brokerNames are the configs that a broker config is looked up under: the time settings exist in several units, the
// finest first. Apache Kafka then hides what stands before the asked name itself.
func brokerNames(name string) []string {
	switch name {
	case "log.roll.ms", "log.roll.hours":
		return []string{"log.roll.ms", "log.roll.hours"}
	case "log.roll.jitter.ms", "log.roll.jitter.hours":
		return []string{"log.roll.jitter.ms", "log.roll.jitter.hours"}
	case "log.flush.interval.ms":
		return []string{"log.flush.interval.ms", "log.flush.scheduler.interval.ms"}
	case "log.retention.ms", "log.retention.minutes", "log.retention.hours":
		return []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"}
	}
	if base := BaseName(name); base != name {
		return []string{name, base}
	}
	return []string{name}
}

// synonyms lists the layers in which a broker config is set, starting at the asked name: what a coarser unit says is
// shown only behind a value under the name itself.
func (l *Layers) synonyms(name string, sensitive bool) []Synonym {
	var all []Synonym
	for _, layer := range l.order() {
		for _, n := range brokerNames(name) {
			if v, ok := layer.get(n); ok {
				s := Synonym{Name: n, Value: &v, Source: layer.source}
				if sensitive {
					s.Value = nil
				}
				all = append(all, s)
			}
		}
	}
	for i, s := range all {
		if s.Name == name {
			return all[i:]
		}
	}
	return nil
}

// DescribeTopic lists the configs of a topic with these overrides, sorted by name. Internal configs are listed only
// when the topic overrides them.
func (l *Layers) DescribeTopic(overrides map[string]string, only Only) []Description {
	var all []Description
	for _, k := range TopicKeys().Keys() {
		_, set := overrides[k.Name]
		if !only.lets(k.Name) || k.Internal && !set {
			continue
		}
		d := Description{Key: k, Name: k.Name, Value: l.TopicValue(k.Name, overrides).Format(k.Type), Source: DefaultSource}
		if set {
			d.Synonyms = append(d.Synonyms, Synonym{k.Name, d.Value, TopicSource})
		}
		if k.BrokerSynonym != "" {
			d.Synonyms = append(d.Synonyms, l.synonyms(k.BrokerSynonym, k.Sensitive())...)
		}
		if len(d.Synonyms) > 0 {
			d.Source = d.Synonyms[0].Source
		}
		all = append(all, d)
	}
	return all
}

// EffectiveTopic lists what the configs of a new topic with these overrides will be, sorted by name: CreateTopics
// answers it. Unlike in DescribeTopic a value of any unit counts as set in its layer.
func (l *Layers) EffectiveTopic(overrides map[string]string) []Description {
	var all []Description
	for _, k := range TopicKeys().Keys() {
		_, set := overrides[k.Name]
		if k.Internal && !set {
			continue
		}
		d := Description{Key: k, Name: k.Name, Source: DefaultSource}
		if set {
			v := overrides[k.Name]
			d.Value, d.Source = &v, TopicSource
		} else {
			d.Value, d.Source = l.topicDefault(k).Format(k.Type), l.topicSource(k)
		}
		all = append(all, d)
	}
	return all
}

// topicSource is the strongest layer in which any broker synonym of a topic config is set.
func (l *Layers) topicSource(k *Key) Source {
	for _, layer := range l.order() {
		for _, s := range topicSynonyms()[k.Name] {
			if _, ok := layer.get(s.broker); ok {
				return layer.source
			}
		}
	}
	return DefaultSource
}

// DescribeBroker lists the configs of this broker, sorted by name: all that are not internal, and whatever else is set.
func (l *Layers) DescribeBroker(only Only) []Description {
	names := make(map[string]bool)
	for _, k := range BrokerKeys().Keys() {
		if !k.Internal {
			names[k.Name] = true
		}
	}
	for _, m := range []map[string]string{l.static, l.clusterWide, l.perBroker} {
		for n := range m {
			names[n] = true
		}
	}
	var all []Description
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if only.lets(name) {
			all = append(all, l.describeBroker(name, func(Source) bool { return true }))
		}
	}
	return all
}

// DescribeClusterDefault lists the dynamic configs that hold for all brokers (resource BROKER ""), sorted by name.
func (l *Layers) DescribeClusterDefault(only Only) []Description {
	var all []Description
	for _, name := range slices.Sorted(maps.Keys(l.clusterWide)) {
		if only.lets(name) {
			d := l.describeBroker(name, func(s Source) bool { return s == DynamicDefaultSource })
			if v := l.clusterWide[name]; !d.Sensitive {
				d.Value = &v
			}
			all = append(all, d)
		}
	}
	return all
}

func (l *Layers) describeBroker(name string, shown func(Source) bool) Description {
	k := BrokerKeys().by[name]
	if k == nil {
		k = BrokerKeys().by[BaseName(name)]
	}
	d := Description{Key: k, Name: name, Sensitive: MaybeSensitive(k), Source: DefaultSource}
	d.ReadOnly = k == nil || k.UpdateMode == ReadOnly
	for _, s := range l.synonyms(name, d.Sensitive) {
		if shown(s.Source) {
			d.Synonyms = append(d.Synonyms, s)
		}
	}
	if len(d.Synonyms) > 0 {
		d.Source = d.Synonyms[0].Source
	}
	if text, _ := l.Text(name); text != nil && !d.Sensitive {
		v, err := k.Parse(text)
		if d.Value = v.Format(k.Type); err != nil {
			d.Value = text
		}
	}
	return d
}

// DescribeGroup lists the configs of a group with these overrides, sorted by name.
func (l *Layers) DescribeGroup(overrides map[string]string, only Only) []Description {
	return l.describeOverrides(GroupKeys(), GroupSource, overrides, only)
}

// DescribeClientMetrics lists the configs of a client metrics subscription, sorted by name.
func (l *Layers) DescribeClientMetrics(overrides map[string]string, only Only) []Description {
	return l.describeOverrides(ClientMetricsKeys(), ClientMetricsSource, overrides, only)
}

func (l *Layers) describeOverrides(def *Definition, own Source, overrides map[string]string, only Only) []Description {
	var all []Description
	for _, k := range def.Keys() {
		text, set := overrides[k.Name]
		if !only.lets(k.Name) || k.Internal && !set {
			continue
		}
		d := Description{Key: k, Name: k.Name, Source: DefaultSource}
		if set {
			v, err := k.Parse(&text)
			if d.Value = v.Format(k.Type); err != nil {
				d.Value = &text
			}
			d.Source = own
			d.Synonyms = []Synonym{{k.Name, d.Value, own}}
		} else {
			d.Value = l.overridable(k).Format(k.Type)
		}
		switch {
		case k.BrokerSynonym != "":
			d.Synonyms = append(d.Synonyms, l.synonyms(k.BrokerSynonym, false)...)
		case own == GroupSource && k.Default != nil:
			d.Synonyms = append(d.Synonyms, Synonym{k.Name, k.Default, DefaultSource})
		}
		if !set && len(d.Synonyms) > 0 {
			d.Source = d.Synonyms[0].Source
		}
		all = append(all, d)
	}
	return all
}

// overridable is the value of a group or client metrics config that nobody set: the broker's, else the default.
func (l *Layers) overridable(k *Key) Value {
	if b, ok := BrokerKeys().Lookup(k.BrokerSynonym); ok {
		v := l.Value(b.Name)
		if b.Type == List && k.Type == String && len(v.List) > 0 {
			return Value{Text: v.List[0]} // one of several that are there: the first
		}
		return v
	}
	v, _ := k.Parse(k.Default)
	return v
}
