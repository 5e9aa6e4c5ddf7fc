// Package admin looks after a cluster: topics, configurations, offsets and records of partitions, groups, transactions, brokers.
//
//	adm := admin.New(cl)                             // or admin.Dial(seeds), which owns a client; then Close it
//	_, err := adm.CreateTopics(ctx, admin.NewTopic{Name: "orders", Partitions: 6})
//	if errors.Is(err, errcode.TopicAlreadyExists) { ... }
//
// # Rows
//
// Results are typed rows, one for each thing that was asked about, in the order of asking. A row that failed carries
// its error in Err, and the call's own error is not nil if any row failed: a caller that looks only at err misses
// nothing, one that wants to go on with the rest reads the rows. An error of one thing is an *Error with the text that
// the broker sent, errors.Is finds its code; one of a whole request is a *client.OpError and stands in every row that
// the request was about.
//
// # What is tried again
//
// Everything that passes by itself, within ctx and at most for default.api.timeout.ms: lost connections, a controller or
// leader that moved, a broker that asks to wait for a quota (KIP-599). Only the rows concerned are asked for again. As with
// Kafka's own Admin, a request whose answer was lost is sent a second time, so CreateTopics may say TOPIC_ALREADY_EXISTS
// of a topic that its first attempt made, and DeleteTopics UNKNOWN_TOPIC_OR_PARTITION.
//
// # How long it takes
//
// An attempt has request.timeout.ms (30 s), a call default.api.timeout.ms (60 s) in all, or less if ctx ends; what is made of
// several calls (Lag, resets, HangingTransactions, RemoveAllMembers) has it for each of them. A request that the brokers work
// on for long tells them to answer in time, so that the rows that are done by then are known. Under a ctx that has ended
// already nothing is sent.
//
// # Groups
//
// Requests about a group go to its coordinator, over the connection of administrators: a member of the same client may
// have a request on its own that waits for minutes. Offsets of a group can be changed while it has no members only; reset
// them with a plan that can be printed first:
//
//	plan, err := adm.PlanReset(ctx, "billing", admin.ResetByDuration(time.Hour))
//	fmt.Print(plan)
//	_, err = plan.Execute(ctx, adm)
//
// # Transactions
//
// A transactional id belongs to a coordinator, which ListTransactions and DescribeTransactions ask; what partitions know of
// producers, and which open transaction holds their readers back, says DescribeProducers. An open transaction ends with its
// coordinator: FenceProducers and ForceTerminateTransaction abort it there and fence whoever has the id. One that no
// coordinator knows hangs, and is ended on its partition:
//
//	rows, err := adm.HangingTransactions(ctx, admin.HangingSearch{Topics: []string{"orders"}})
//	for _, h := range rows {
//		err = adm.AbortTransaction(ctx, h.AbortSpec())
//	}
//
// # Old brokers
//
// Everything works with brokers from 2.1 on unless its comment names a later version; then the error of an older broker
// is client.ErrUnsupportedVersion, and nothing was changed.
//
// # For a newcomer
//
//	admin.go errors.go          Admin, one request, errors of rows
//	rounds.go leaders.go brokers.go
//	                            asking again for what is left; asking each partition's leader; asking all brokers
//	topics.go describe_topics.go partitions.go records.go offsets.go configs.go alter_configs.go cluster.go api_versions.go
//	                            a noun each
//	groups.go describe_groups.go remove_members.go group_offsets.go
//	                            groups, at their coordinators, which groups.go finds
//	transactions.go fence_producers.go
//	                            transactional ids, at their coordinators
//	producers.go hanging_transactions.go abort_transaction.go
//	                            producers and transactions of partitions, at their leaders
//	reset_offsets.go lag.go     what is made of them: a reset as a plan, how far a group is behind
//	versions.go                 what a request leaves out for older brokers
//
// An Admin holds no state of its own beside the client, so all methods may be called from any goroutine.
package admin
