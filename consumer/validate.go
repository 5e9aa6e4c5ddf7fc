package consumer

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/client"
)

// Validate says everything that is wrong with a configuration: errors.Join of *client.FieldError.
func (c *Config) Validate() error {
	v := validator{}
	v.size("fetch.min.bytes", c.MinBytes, 0)
	v.size("fetch.max.bytes", c.MaxBytes, 0)
	v.size("max.partition.fetch.bytes", c.MaxPartitionBytes, 0)
	v.size("max.poll.records", c.MaxPollRecords, 1)
	v.size("max.decompressed.batch.bytes", c.MaxDecompressed, 1)
	v.check(c.MaxWait >= 0 && c.MaxWait.Milliseconds() <= math.MaxInt32, "fetch.max.wait.ms", c.MaxWait.String(), "must be from 0 to 2147483647 ms")
	v.check(c.Standstill >= 0, "Standstill", c.Standstill.String(), "must not be negative; zero tells nothing")
	v.check(c.APITimeout >= 0, "default.api.timeout.ms", c.APITimeout.String(), "must not be negative")
	v.check(c.Isolation == ReadCommitted || c.Isolation == ReadUncommitted, "isolation.level", strconv.Itoa(int(c.Isolation)), "is read_committed or read_uncommitted")
	v.err("auto.offset.reset", c.Reset.String(), c.Reset.ValidReset())
	v.err("Start", c.Start.String(), c.Start.ValidStart())
	seen := map[TopicPartition]bool{}
	for _, a := range c.Assigned {
		v.err("Assigned", a.String(), a.valid())
		v.check(!seen[a.TopicPartition], "Assigned", a.String(), "is assigned twice")
		seen[a.TopicPartition] = true
	}
	for i, f := range c.Interceptors {
		v.check(f != nil, "interceptor.classes", strconv.Itoa(i), "is a nil interceptor")
	}
	v.check(len(c.Assigned) == 0 || !c.Group.subscribes(), "Assigned", "", "and Subscribe exclude each other: the group assigns the partitions")
	c.Group.validate(&v)
	return errors.Join(v.errs...)
}

func (g *GroupConfig) validate(v *validator) {
	v.check(g.Protocol == "classic" || g.Protocol == "consumer" || g.Protocol == "auto", "group.protocol", g.Protocol, "is classic, consumer or auto")
	v.check(g.AutoCommitInterval >= 0, "auto.commit.interval.ms", g.AutoCommitInterval.String(), "must not be negative")
	v.check(g.MaxPollInterval > 0, "max.poll.interval.ms", g.MaxPollInterval.String(), "must be positive")
	v.check(g.DrainTimeout >= 0 && g.DrainTimeout < g.MaxPollInterval, "DrainTimeout", g.DrainTimeout.String(),
		"must be less than max.poll.interval.ms ("+g.MaxPollInterval.String()+"), or the group gives the partitions away before they are committed")
	v.check(g.HeartbeatInterval > 0 && g.HeartbeatInterval < g.SessionTimeout || g.ID == "", "heartbeat.interval.ms", g.HeartbeatInterval.String(),
		"must be positive and less than session.timeout.ms ("+g.SessionTimeout.String()+")")
	v.check(g.InstanceID == "" || g.ID != "", "group.instance.id", g.InstanceID, "needs group.id")
	for _, name := range g.Assignors {
		v.check(assignorNamed(name) != nil, "partition.assignment.strategy", name, "is one of range, roundrobin, sticky, cooperative-sticky")
	}
	if !g.subscribes() {
		return
	}
	v.check(g.ID != "", "group.id", "", "is needed to subscribe: members of a group share the topics")
	v.check(len(g.Topics) == 0 || g.Pattern == "", "Pattern", g.Pattern, "and topics by name exclude each other")
	for _, t := range g.Topics {
		v.err("Topics", t, Assignment{TopicPartition: TopicPartition{Topic: t}}.valid())
	}
	_, err := regexp.Compile(g.Pattern)
	v.err("Pattern", g.Pattern, err)
}

// validator gathers what is wrong.
type validator struct{ errs []error }

func (v *validator) check(ok bool, key, value, reason string) {
	if !ok {
		v.errs = append(v.errs, &client.FieldError{Key: key, Value: value, Reason: reason})
	}
}

func (v *validator) err(key, value string, err error) {
	if err != nil {
		v.errs = append(v.errs, &client.FieldError{Key: key, Value: value, Reason: err.Error()})
	}
}

func (v *validator) size(key string, n, least int) {
	v.check(n >= least && n <= math.MaxInt32, key, strconv.Itoa(n), "must be from "+strconv.Itoa(least)+" to 2147483647")
}

// maxTopicName is Kafka's limit; the rest of the rules are the broker's to judge.
const maxTopicName = 249

func (a Assignment) valid() error {
	switch {
	case a.Topic == "":
		return errors.New("has no topic name")
	case len(a.Topic) > maxTopicName || strings.ContainsAny(a.Topic, "/\\,\x00:\"'; *?\t\r\n=") || a.Topic == "." || a.Topic == "..":
		return errors.New("is not a legal topic name: up to 249 of [a-zA-Z0-9._-]")
	case a.Partition < 0:
		return errors.New("has a negative partition")
	}
	return a.Start.ValidStart()
}
