package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// divided sorts the resources of a request that alters configurations: check says what the broker refuses, or has done
// itself (code None), and nil for what the controller is to do. join puts the controller's rows between the broker's own,
// in the order of the request.
func divided[Resource, Row any](named []config.Resource, resources []Resource, check func(i int) *refusal,
	row func(config.Resource, *refusal) Row) (forward []Resource, join func(controlled []Row) []Row) {
	answers := make([]*refusal, len(named))
	refuseRepeated(named, answers)
	for i := range named {
		if answers[i] == nil {
			answers[i] = check(i)
		}
		if answers[i] == nil {
			forward = append(forward, resources[i])
		}
	}
	return forward, func(controlled []Row) (rows []Row) {
		for i, a := range answers {
			if a == nil {
				rows, controlled = append(rows, controlled[0]), controlled[1:]
				continue
			}
			rows = append(rows, row(named[i], a))
		}
		return rows
	}
}

func (f *refusal) message() *string {
	if f.code == errcode.None || f.text == "" {
		return nil
	}
	return &f.text
}

// refuseRepeated refuses every mention of a resource that is mentioned twice.
func refuseRepeated(resources []config.Resource, answers []*refusal) {
	first := make(map[config.Resource]int, len(resources))
	for i, r := range resources {
		if at, ok := first[r]; ok {
			answers[at] = refusef(errcode.InvalidRequest, "Each resource must appear at most once.")
			answers[i] = answers[at]
			continue
		}
		first[r] = i
	}
}
