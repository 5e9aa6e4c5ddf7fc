package controller

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Texts of UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID.
const (
	unknownTopicText   = "This server does not host this topic-partition."
	unknownTopicIDText = "This server does not host this topic ID."
)

// deletion collects the topics of a request that may be named in two lists, by name or by id.
type deletion struct {
	image   *image.Image
	resp    *message.DeleteTopicsResponse
	names   map[string]int
	ids     map[wire.UUID]int
	chosen  map[wire.UUID]bool
	records []image.Record
}

// deleteTopics removes topics. A topic that is named twice, in whichever way, is not removed.
func (c *Controller) deleteTopics(v View, r *message.DeleteTopicsRequest) Result {
	d := &deletion{image: v.Image, resp: &message.DeleteTopicsResponse{}, names: make(map[string]int),
		ids: make(map[wire.UUID]int), chosen: make(map[wire.UUID]bool)}
	if !c.layers(v.Image).Bool("delete.topic.enable") {
		for _, n := range r.TopicNames {
			d.answer(&n, wire.UUID{}, refuse(errcode.TopicDeletionDisabled, "Topic deletion is disabled."))
		}
		for _, t := range r.Topics {
			d.answer(t.Name, t.TopicId, refuse(errcode.TopicDeletionDisabled, "Topic deletion is disabled."))
		}
		return Result{Response: d.resp}
	}
	names, ids := d.sort(r)
	for _, id := range ids {
		d.deleteID(id)
	}
	for _, name := range names {
		d.deleteName(name)
	}
	return Result{Records: d.records, Response: d.resp}
}

// sort answers what is malformed and returns the names and ids to look at, each once, in the order of the request.
func (d *deletion) sort(r *message.DeleteTopicsRequest) (names []string, ids []wire.UUID) {
	addName := func(n string) {
		if d.names[n]++; d.names[n] == 1 {
			names = append(names, n)
		}
	}
	for _, n := range r.TopicNames {
		addName(n)
	}
	for _, t := range r.Topics {
		switch {
		case t.Name == nil && t.TopicId.IsZero():
			d.answer(nil, t.TopicId, refuse(errcode.InvalidRequest, "Neither topic name nor id were specified."))
		case t.Name == nil:
			if d.ids[t.TopicId]++; d.ids[t.TopicId] == 1 {
				ids = append(ids, t.TopicId)
			}
		case t.TopicId.IsZero():
			addName(*t.Name)
		default:
			d.answer(t.Name, t.TopicId, refuse(errcode.InvalidRequest, "You may not specify both topic name and topic id."))
		}
	}
	return names, ids
}

func (d *deletion) deleteID(id wire.UUID) {
	t := d.image.TopicByID(id)
	switch {
	case d.ids[id] > 1:
		d.answer(nil, id, refuse(errcode.InvalidRequest, "Duplicate topic id."))
	case t == nil:
		d.answer(nil, id, refuse(errcode.UnknownTopicId, unknownTopicIDText))
	case d.names[t.Name] == 1: // answered under its name
		d.chosen[id] = true
	default:
		d.remove(t)
	}
}

func (d *deletion) deleteName(name string) {
	t := d.image.Topic(name)
	switch {
	case d.names[name] > 1:
		d.answer(&name, wire.UUID{}, refuse(errcode.InvalidRequest, "Duplicate topic name."))
	case t == nil:
		d.answer(&name, wire.UUID{}, refuse(errcode.UnknownTopicOrPartition, unknownTopicText))
	case d.chosen[t.ID]:
		d.answer(&name, t.ID, refuse(errcode.InvalidRequest, "The provided topic name maps to an ID that was already supplied."))
	default:
		d.remove(t)
	}
}

func (d *deletion) remove(t *image.Topic) {
	d.records = append(d.records, image.Record{Record: &logrecord.RemoveTopicRecord{TopicId: t.ID}})
	d.answer(&t.Name, t.ID, apiError{})
}

func (d *deletion) answer(name *string, id wire.UUID, e apiError) {
	d.resp.Responses = append(d.resp.Responses, message.DeletableTopicResult{Name: name, TopicId: id, ErrorCode: int16(e.code), ErrorMessage: e.message})
}
