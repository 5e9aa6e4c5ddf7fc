package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// unknownName is the error about something that does not exist, with what was probably meant and what to do.
type unknownName struct {
	kind, name, meant, todo string
	err                     error
}

func (e *unknownName) Error() string {
	text := fmt.Sprintf("%s '%s' does not exist", e.kind, e.name)
	if e.meant != "" {
		text += fmt.Sprintf("; did you mean '%s'?", e.meant)
	}
	if e.todo != "" {
		text += "\nottla: " + e.todo
	}
	return text
}

func (e *unknownName) Unwrap() error { return e.err }

// topicError is the error of a row about a topic, in better words if the topic does not exist.
func (s *session) topicError(ctx context.Context, topic string, err error) error {
	if !errors.Is(err, errcode.UnknownTopicOrPartition) {
		return err
	}
	rows, _ := s.adm.ListTopics(ctx)
	var names []string
	for _, t := range rows {
		if t.Name == topic {
			return err // it is the partition that is missing
		}
		names = append(names, t.Name)
	}
	return &unknownName{"topic", topic, nearest(topic, names), fmt.Sprintf("create it with 'ottla topics create %s', or see 'ottla topics list'", topic), err}
}

// topicErrors does so for all rows.
func (s *session) topicErrors(ctx context.Context, rows []admin.Topic) error {
	var errs []error
	for _, t := range rows {
		if t.Err != nil {
			errs = append(errs, s.topicError(ctx, t.Name, t.Err))
		}
	}
	return joinLines(errs)
}

// groupError is the error of a row about a group.
func (s *session) groupError(ctx context.Context, group string, err error) error {
	if !errors.Is(err, errcode.GroupIdNotFound) {
		return err
	}
	rows, _ := s.adm.ListGroups(ctx, admin.GroupFilter{})
	var names []string
	for _, g := range rows {
		names = append(names, g.ID)
	}
	return &unknownName{"group", group, nearest(group, names), "see 'ottla groups list'", err}
}

// joinLines is errors.Join with this command's name at the head of each line.
func joinLines(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return &lines{errs}
}

type lines struct{ errs []error }

func (l *lines) Error() string {
	texts := make([]string, len(l.errs))
	for i, err := range l.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\nottla: ")
}

func (l *lines) Unwrap() []error { return l.errs }

// nearest is the name that needs the fewest changes to become the given one, if a third of the letters are enough.
func nearest(name string, names []string) string {
	best, distance := "", len(name)/3+2
	for _, n := range names {
		if d := config.Distance(strings.ToLower(name), strings.ToLower(n), distance); d < distance {
			best, distance = n, d
		}
	}
	return best
}
