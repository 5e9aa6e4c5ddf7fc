package main

import "context"

// topicsListCmd prints a row for each topic.
type topicsListCmd struct {
	connection
	output
	ExcludeInternal bool `help:"Leave out topics that brokers made for themselves, such as __consumer_offsets."`
}

// Run lists topics by name.
func (c *topicsListCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		topics, err := s.adm.ListTopics(ctx)
		t := newTable("name", "partitions", "replicas", "internal")
		for _, topic := range topics {
			if !topic.Internal || !c.ExcludeInternal {
				t.add(topic.Name, len(topic.Partitions), topic.Replicas(), topic.Internal)
			}
		}
		return printed(t.print(io.out, c.Output), err)
	})
}

// printed is the error of a command whose rows are out: that of the work, or else that of the printing.
func printed(print, work error) error {
	if work != nil {
		return work
	}
	return print
}
