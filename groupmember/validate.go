package groupmember

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/client"
)

// Validate says everything that is wrong with a configuration: errors.Join of *client.FieldError.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, key, value, reason string) {
		if !ok {
			errs = append(errs, &client.FieldError{Key: key, Value: value, Reason: reason})
		}
	}
	check(c.GroupID != "", "group.id", "", "is required")
	check(len(c.Topics) > 0 || c.Pattern != "", "Topics", "", "or Pattern is required: give topics by name, or an expression")
	check(len(c.Topics) == 0 || c.Pattern == "", "Pattern", c.Pattern, "cannot be combined with Topics ("+strings.Join(c.Topics, ", ")+")")
	check(!slices.Contains(c.Topics, ""), "Topics", "", "has an empty name")
	if _, err := regexp.Compile(c.Pattern); err != nil {
		check(false, "Pattern", c.Pattern, "is no RE2 expression: "+err.Error())
	}
	check(c.Pattern == "" || c.DiscoverEvery > 0, "DiscoverEvery", c.DiscoverEvery.String(), "must be positive")
	check(c.Protocol <= Consumer, "group.protocol", c.Protocol.String(), "is classic, consumer or auto")
	check(c.HeartbeatInterval > 0 && c.HeartbeatInterval < c.SessionTimeout, "heartbeat.interval.ms", c.HeartbeatInterval.String(),
		"must be positive and less than session.timeout.ms ("+c.SessionTimeout.String()+"); a third of it is usual")
	check(c.RebalanceTimeout > 0, "max.poll.interval.ms", c.RebalanceTimeout.String(), "must be positive")
	check(len(c.Assignors) > 0, "partition.assignment.strategy", "", "needs an assignor: Range, RoundRobin, Sticky, CooperativeSticky or one of your own")
	names := map[string]bool{}
	for _, a := range c.Assignors {
		if a == nil {
			check(false, "partition.assignment.strategy", "", "has a nil assignor")
			continue
		}
		check(!names[a.Name()] && a.Name() != "", "partition.assignment.strategy", a.Name(), "is empty or given twice")
		names[a.Name()] = true
	}
	check(c.Protocol != Consumer || !c.ownAssignors(), "partition.assignment.strategy", "", "has no meaning with group.protocol=consumer: the coordinator assigns, see group.remote.assignor")
	check(c.Protocol != Classic || c.RemoteAssignor == "", "group.remote.assignor", c.RemoteAssignor, "has no meaning with group.protocol=classic")
	return errors.Join(errs...)
}

// ownAssignors tells that the assignors are not just the defaults.
func (c *Config) ownAssignors() bool {
	if c.assignorsSet {
		return true
	}
	return !slices.EqualFunc(c.Assignors, DefaultConfig().Assignors, func(a, b Assignor) bool { return a != nil && b != nil && a.Name() == b.Name() })
}
