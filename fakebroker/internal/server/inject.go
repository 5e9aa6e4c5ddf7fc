package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// inject lets a fault rule have its way with a request; false means that no rule wants it.
func (b *Broker) inject(r *Request, h handler) bool {
	r.outcome = b.faults.Match(b.pointOf(r))
	if b.late.waiting.Load() > 0 {
		r.late = &b.late
	}
	if r.outcome.IsZero() {
		return false
	}
	x, arrived := r.x, r.outcome.Arrived
	next := func() { x.Resume(func() { b.strike(r, h) }) }
	if arrived != nil {
		strike := next
		next = func() { go func() { arrived(); strike() }() } // ends with the hook, which may well stop this broker
	}
	switch {
	case r.outcome.Delay > 0:
		time.AfterFunc(r.outcome.Delay, next)
	case arrived != nil:
		next()
	default:
		b.strike(r, h)
	}
	return true
}

// pointOf is a request as fault rules see it. Its names belong to it alone, so that a hook may ask for them while the
// connection, or the broker, ends.
func (b *Broker) pointOf(r *Request) fault.Point {
	p := fault.Point{Key: r.Key}
	if r.ClientID != nil {
		p.ClientID = *r.ClientID
	}
	names := sync.OnceValue(func() requestNames { return b.namesOf(r.Body) })
	p.Topics = func() []string { return names().topics }
	p.Groups = func() []string { return names().groups }
	p.TransactionalIDs = func() []string { return names().transactionalIDs }
	return p
}

func (b *Broker) strike(r *Request, h handler) {
	o := &r.outcome
	switch {
	case o.Late:
		b.late.detach(b, r, h)
		r.Close(fmt.Errorf("fault rule for %s: connection dropped, the request comes later", r.Key))
	case o.Hang:
		b.neverAnswer(r, fmt.Errorf("fault rule for %s: hang", r.Key))
	case o.Drop:
		r.Close(fmt.Errorf("fault rule for %s: connection dropped", r.Key))
	case o.Code == errcode.None:
		h(b, r) // late, or to lose its answer
	case answersByTopic(r.Body):
		h(b, r) // the handler asks the outcome topic by topic
	default:
		if resp := failedResponse(r, o.Code); resp != nil {
			r.Respond(resp)
			return
		}
		r.Close(fmt.Errorf("fault rule for %s: error %s has no place in this API's answer", r.Key, o.Code.Name()))
	}
}

// answersByTopic lists the APIs whose handlers ask Outcome.For.
func answersByTopic(req message.Request) bool {
	switch req.(type) {
	case *message.ProduceRequest, *message.FetchRequest, *message.ListOffsetsRequest, *message.DeleteRecordsRequest,
		*message.OffsetForLeaderEpochRequest:
		return true
	}
	return false
}

// failedResponse is an answer that has code wherever the request asked for something; nil for APIs without such a form.
func failedResponse(r *Request, code errcode.Code) message.Response {
	c := int16(code)
	switch req := r.Body.(type) {
	case *message.MetadataRequest:
		resp := message.NewMetadataResponse()
		for i := range req.Topics {
			t := message.MetadataResponseTopic{ErrorCode: c, Name: req.Topics[i].Name, TopicId: req.Topics[i].TopicId}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	case *message.InitProducerIdRequest:
		return &message.InitProducerIdResponse{ErrorCode: c, ProducerId: -1, ProducerEpoch: -1, OngoingTxnProducerId: -1, OngoingTxnProducerEpoch: -1}
	case *message.CreateTopicsRequest:
		resp := message.NewCreateTopicsResponse()
		for i := range req.Topics {
			t := message.CreatableTopicResult{}
			t.SetDefaults()
			t.Name, t.ErrorCode = req.Topics[i].Name, c
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	case *message.DeleteTopicsRequest:
		resp := message.NewDeleteTopicsResponse()
		for _, name := range req.TopicNames {
			resp.Responses = append(resp.Responses, message.DeletableTopicResult{Name: &name, ErrorCode: c})
		}
		for i := range req.Topics {
			resp.Responses = append(resp.Responses, message.DeletableTopicResult{Name: req.Topics[i].Name, TopicId: req.Topics[i].TopicId, ErrorCode: c})
		}
		return resp
	case *message.CreatePartitionsRequest:
		resp := message.NewCreatePartitionsResponse()
		for i := range req.Topics {
			resp.Results = append(resp.Results, message.CreatePartitionsTopicResult{Name: req.Topics[i].Name, ErrorCode: c})
		}
		return resp
	case *message.SaslHandshakeRequest:
		return &message.SaslHandshakeResponse{ErrorCode: c}
	case *message.DescribeClusterRequest:
		resp := message.NewDescribeClusterResponse()
		resp.ErrorCode, resp.ErrorMessage = c, new(code.Text())
		return resp
	case *message.ApiVersionsRequest:
		resp := message.NewApiVersionsResponse()
		resp.ErrorCode = c
		return resp
	case *message.DescribeConfigsRequest:
		resp := message.NewDescribeConfigsResponse()
		for i := range req.Resources {
			resp.Results = append(resp.Results, message.DescribeConfigsResult{ErrorCode: c, ResourceType: req.Resources[i].ResourceType, ResourceName: req.Resources[i].ResourceName})
		}
		return resp
	}
	if resp := failedTransactionResponse(r, code); resp != nil {
		return resp
	}
	return failedGroupResponse(r, code)
}
