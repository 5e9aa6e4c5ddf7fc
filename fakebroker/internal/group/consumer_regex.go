package group

import (
	"errors"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// regexMinInterval is how long at least the resolved patterns of a group stay before new topics are looked for.
const regexMinInterval = 10 * time.Second

// A resolvedRegex is a pattern of a group with the topics that it matched.
type resolvedRegex struct {
	topics  []string // sorted
	version int64    // offset of the metadata image that was looked through
	at      int64    // ms
}

// regexCache keeps compiled patterns; it is bounded.
type regexCache struct {
	compiled map[string]*regexp.Regexp
}

const regexCacheSize = 256

func (r *regexCache) get(pattern string) *regexp.Regexp {
	if re := r.compiled[pattern]; re != nil {
		return re
	}
	re, bad := compileRegex(pattern)
	if bad != nil {
		return nil // an older log may hold what is refused today: it matches nothing
	}
	if len(r.compiled) >= regexCacheSize || r.compiled == nil {
		r.compiled = make(map[string]*regexp.Regexp)
	}
	r.compiled[pattern] = re
	return re
}

// compileRegex compiles a pattern, which is RE2 in Apache Kafka as in Go; it has to match whole names.
func compileRegex(pattern string) (*regexp.Regexp, *refusal) {
	_, err := regexp.Compile(pattern)
	if err == nil {
		return regexp.MustCompile(`\A(?:` + pattern + `)\z`), nil
	}
	text := err.Error()
	var se *syntax.Error
	if errors.As(err, &se) {
		text = string(se.Code)
	}
	return nil, refuse(errcode.InvalidRegularExpression, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", pattern, text)
}

// patterns are those of the members, sorted.
func (c *consumerGroup) patterns() []string {
	set := make(map[string]bool)
	for _, x := range c.members {
		if x.regex != "" {
			set[x.regex] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// watchRegexes decides when the patterns of a group are resolved next: at once when one never was, soon when there are
// newer topics, and from time to time.
func (m *Machine) watchRegexes(now time.Time, g *group) {
	key := timerKey{kind: regexTimer, group: g.id}
	patterns := g.consumer.patterns()
	if len(patterns) == 0 {
		m.timers.stop(key)
		return
	}
	due := now.Add(m.set.regexRefresh)
	offset, _ := m.env.Image.Offset()
	for _, p := range patterns {
		r := g.consumer.regexes[p]
		if r == nil {
			due = now
			break
		}
		looked := time.UnixMilli(max(r.at, g.history.resolvedAt))
		at := looked.Add(m.set.regexRefresh)
		if r.version < offset && g.history.resolvedVersion < offset {
			at = looked.Add(regexMinInterval)
		}
		if at.Before(due) {
			due = at
		}
	}
	m.timers.set(key, due)
}

// resolveRegexes looks through all topics. A pattern that matches other topics than before begins a new epoch.
func (m *Machine) resolveRegexes(now time.Time, g *group, out *coordinator.Result) {
	c := g.consumer
	offset, _ := m.env.Image.Offset()
	all := maps.Clone(c.regexes)
	bump := false
	for _, pattern := range c.patterns() {
		matched := []string{}
		if re := m.regex.get(pattern); re != nil {
			for _, name := range m.env.Image.TopicNames() {
				if re.MatchString(name) {
					matched = append(matched, name)
				}
			}
		}
		before := c.regexes[pattern]
		if before != nil && slices.Equal(before.topics, matched) {
			continue
		}
		bump = bump || before != nil || len(matched) > 0
		all[pattern] = &resolvedRegex{topics: matched, version: offset, at: now.UnixMilli()}
		out.Record(&logrecord.ConsumerGroupRegularExpressionKey{GroupId: g.id, RegularExpression: pattern},
			&logrecord.ConsumerGroupRegularExpressionValue{Topics: matched, Version: offset, Timestamp: now.UnixMilli()}, 0)
	}
	if bump {
		ch := m.changeOf(g.id, c)
		ch.regexes = all
		ch.rehash()
		ch.bump(out)
	}
	out.Written = append(out.Written, func(now time.Time, _ *coordinator.Result) {
		g.history.resolvedAt, g.history.resolvedVersion = now.UnixMilli(), offset
		if bump && g.consumer != nil {
			g.history.add(Event{Cause: PartitionsChanged, Reason: "topics of a regular expression"}.at(now, g.consumer.epoch-1))
		}
		if g.consumer != nil {
			m.watchRegexes(now, g)
		}
	})
	out.Failed = append(out.Failed, func(now time.Time, _ errcode.Code, _ *coordinator.Result) {
		m.timers.set(timerKey{kind: regexTimer, group: g.id}, now.Add(regexMinInterval))
	})
}
