package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Refusal is an error whose text is Apache Kafka's, word for word: clients show it to people, and some look for it.
type Refusal string

// Error is the text that goes to the client.
func (r Refusal) Error() string { return string(r) }

func refusef(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// CheckTopic checks the overrides of a topic as a whole, as Apache Kafka does before it writes them: names, values, and
// what must fit together. The error's text is Apache Kafka's.
func (l *Layers) CheckTopic(overrides map[string]string) error {
	if err := checkAll(TopicKeys(), overrides); err != nil {
		return err
	}
	minLag, maxLag := l.TopicValue("min.compaction.lag.ms", overrides).Int, l.TopicValue("max.compaction.lag.ms", overrides).Int
	if minLag > maxLag {
		return refusef("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", minLag, maxLag)
	}
	if l.TopicValue("remote.storage.enable", overrides).Bool {
		return refusef("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
	}
	return nil
}

// checkAll parses every override; names first, as Apache Kafka does.
func checkAll(def *Definition, overrides map[string]string) error {
	names := slices.Sorted(maps.Keys(overrides))
	for _, name := range names {
		if _, ok := def.Lookup(name); !ok {
			return &UnknownKeyError{Kind: def.Kind, Key: name, Suggest: def.Suggest(name)}
		}
	}
	for _, name := range names {
		text := overrides[name]
		if _, err := def.by[name].Parse(&text); err != nil {
			return err
		}
	}
	return nil
}

// groupLimits are the broker configs between which a group's config must stay.
var groupLimits = map[string][2]string{
	"consumer.session.timeout.ms":      {"group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	"consumer.heartbeat.interval.ms":   {"group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	"consumer.assignment.interval.ms":  {"group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
	"share.session.timeout.ms":         {"group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"},
	"share.heartbeat.interval.ms":      {"group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
	"share.assignment.interval.ms":     {"group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"},
	"share.record.lock.duration.ms":    {"group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	"share.delivery.count.limit":       {"group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"},
	"share.partition.max.record.locks": {"group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"},
	"streams.session.timeout.ms":       {"group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"},
	"streams.heartbeat.interval.ms":    {"group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"},
	"streams.assignment.interval.ms":   {"group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"},
}

// CheckGroup checks the overrides of a group: names, values, and the limits that the broker sets.
func (l *Layers) CheckGroup(overrides map[string]string) error {
	if err := checkAll(GroupKeys(), overrides); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		limits, ok := groupLimits[name]
		if !ok {
			continue
		}
		text := overrides[name]
		v, _ := GroupKeys().by[name].Parse(&text)
		if lo, hi := l.Int(limits[0]), l.Int(limits[1]); v.Int < lo || v.Int > hi {
			return refusef("%s must be in the range %d to %d inclusive.", name, lo, hi)
		}
	}
	return nil
}

// Metrics subscriptions: the interval's limits, and what a client can be matched by.
const (
	minMetricsIntervalMs = 100
	maxMetricsIntervalMs = 3_600_000
)

var metricsSelectors = []string{"client_instance_id", "client_id", "client_software_name", "client_software_version",
	"client_source_address", "client_source_port"}

// CheckClientMetrics checks the overrides of a client metrics subscription. bad reports whether the request as such is
// at fault (INVALID_REQUEST) rather than a value (INVALID_CONFIG).
func CheckClientMetrics(overrides map[string]string) (bad bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if _, ok := ClientMetricsKeys().Lookup(name); !ok {
			return true, refusef("Unknown client metrics configuration: %s", name)
		}
	}
	if err := checkAll(ClientMetricsKeys(), overrides); err != nil {
		return false, err
	}
	if text, ok := overrides["interval.ms"]; ok {
		n, _ := strconv.Atoi(strings.TrimSpace(text))
		if n < minMetricsIntervalMs || n > maxMetricsIntervalMs {
			return true, refusef("Invalid value %s for interval.ms, interval must be between %d and %d (1 hour)",
				text, minMetricsIntervalMs, maxMetricsIntervalMs)
		}
	}
	for _, pattern := range SplitList(overrides["match"]) {
		name, _, ok := strings.Cut(pattern, "=")
		if !ok || !slices.Contains(metricsSelectors, strings.TrimSpace(name)) {
			return false, refusef("Illegal client matching pattern: %s", pattern)
		}
	}
	return false, nil
}

// threadCounts may at most be doubled or halved at a time.
var threadCounts = []string{"num.io.threads", "num.network.threads", "num.replica.fetchers",
	"num.recovery.threads.per.data.dir", "background.threads"}

// CheckBroker checks dynamic broker configs as a whole, all those that will be set for a broker (perBroker) or for all
// brokers: what may be updated, where, and to what, seen from the values in effect now. The text is Apache Kafka's; all
// these errors are INVALID_REQUEST.
func (l *Layers) CheckBroker(props map[string]string, perBroker bool) error {
	var fixed, unprefixed, single []string
	for _, name := range slices.Sorted(maps.Keys(props)) {
		k, ok := BrokerKeys().Lookup(BaseName(name))
		switch {
		case !ok:
		case k.UpdateMode == ReadOnly:
			fixed = append(fixed, name)
		case k.UpdateMode == PerBroker && name == k.Name && listenerOnly(name):
			unprefixed = append(unprefixed, name)
		case k.UpdateMode == PerBroker:
			single = append(single, name)
		}
	}
	refuse := func(why string, names []string) error {
		return refusef("%s: [%s]", why, strings.Join(names, ", "))
	}
	if len(fixed) > 0 {
		return refuse("Cannot update these configs dynamically", fixed)
	}
	if len(unprefixed) > 0 {
		return refuse("These security configs can be dynamically updated only per-listener using the listener prefix", unprefixed)
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if k, ok := BrokerKeys().Lookup(BaseName(name)); ok {
			text := props[name]
			if _, err := k.Parse(&text); err != nil {
				return err
			}
		}
	}
	if !perBroker && len(single) > 0 {
		return refuse("Cannot update these configs at default cluster level, broker id must be specified", single)
	}
	return l.checkThreads(props)
}

// listenerOnly reports whether a dynamic security config is accepted only with a listener prefix.
func listenerOnly(name string) bool {
	return strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl.") || name == "principal.builder.class"
}

func (l *Layers) checkThreads(props map[string]string) error {
	wrap := func(msg string) error {
		return refusef("Invalid value org.apache.kafka.common.config.ConfigException: %s for configuration Invalid dynamic configuration", msg)
	}
	for _, name := range threadCounts {
		text, ok := props[name]
		if !ok {
			continue
		}
		n, now := atoi(text), l.Int(name)
		prefix := fmt.Sprintf("Dynamic thread count update validation failed for %s=%d, ", name, n)
		switch {
		case n == now:
		case n < now/2:
			return wrap(prefix + fmt.Sprintf("value should be at least half the current value %d", now))
		case n > now*2:
			return wrap(prefix + fmt.Sprintf("value should not be greater than double the current value %d", now))
		}
	}
	if text, ok := props["log.cleaner.threads"]; ok {
		switch n, now := atoi(text), l.Int("log.cleaner.threads"); {
		case n < now/2:
			return wrap(fmt.Sprintf("Log cleaner threads cannot be reduced to less than half the current value %d", now))
		case n > now*2:
			return wrap(fmt.Sprintf("Log cleaner threads cannot be increased to more than double the current value %d", now))
		}
	}
	return nil
}

// atoi reads an integer that was checked before.
func atoi(text string) int64 {
	v, _ := parseAs(Long, strings.TrimFunc(text, javaSpace))
	return v.Int
}
