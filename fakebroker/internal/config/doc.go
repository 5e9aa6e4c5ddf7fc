// Package config knows every broker, topic, group and client-metrics config of Apache Kafka 4.4: name, type, default,
// valid values, importance, how it may be updated, and which broker config stands in for which topic config.
//
// # Map
//
//   - data/*.tsv     the definitions, one config a line, as facts taken from Apache Kafka 4.4.0
//   - definition.go  Key and Definition: the tables, loaded when first asked for
//   - value.go       text to value and back, with Java's rules (trimming, number syntax, lists)
//   - valid.go       the "valid values" column as a check
//   - suggest.go     "did you mean" for unknown names
//   - layers.go      where a broker's value comes from: dynamic for this broker, dynamic default, server properties, default
//   - topic.go       the effective configs of a topic, and [Log], their typed form
//   - alter.go       may these configs be set on this resource, all taken together
//   - describe.go    what DescribeConfigs and CreateTopics say about a config: source, synonyms, read-only, sensitive
//
// # Where a value comes from
//
// A broker config is looked for in four layers, first hit wins; a topic config has one more in front:
//
//	topic override              TOPIC_CONFIG                    retention.ms on the topic
//	dynamic, this broker        DYNAMIC_BROKER_CONFIG           resource BROKER "1"
//	dynamic, cluster default    DYNAMIC_DEFAULT_BROKER_CONFIG   resource BROKER ""
//	server properties           STATIC_BROKER_CONFIG            what the broker was started with
//	default                     DEFAULT_CONFIG                  the table
//
// A topic config without override takes the value of its broker synonyms in order, each in its own unit:
// retention.ms <- log.retention.ms, log.retention.minutes, log.retention.hours.
//
// All of this is plain data and functions: no clock, no goroutine, no lock. Layers and what is resolved from them are
// immutable; the server keeps the current one and replaces it when the metadata image brings new configs.
package config
