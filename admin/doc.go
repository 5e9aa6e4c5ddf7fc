// Package admin looks after a cluster: topics, configurations, offsets and records of partitions, brokers.
//
// Every call takes a context and sends its requests through the client it was made with, to the controller, to
// partition leaders or to any broker, with the client's retries. Results are typed rows, one for each thing that was
// asked about. A row that failed carries its error in Err, and the call's own error is not nil if any row failed: a
// caller that looks only at err misses nothing, one that wants to go on with the rest reads the rows. The text that the
// broker sent with an error is kept, and errors.Is finds the code:
//
//	_, err := adm.CreateTopics(ctx, admin.NewTopic{Name: "orders", Partitions: 6})
//	if errors.Is(err, errcode.TopicAlreadyExists) { ... }
//
// There is one file for each noun: topics, partitions, records, offsets, configs, cluster. An Admin holds no state of
// its own, so all methods may be called from any goroutine and nothing has to be closed.
package admin
