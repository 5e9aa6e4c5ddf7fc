// Package groupmember is membership in consumer groups, without fetching: a Member joins a group, is told which
// partitions it holds, gives them up in good order, and commits offsets under its generation. Package consumer builds
// its groups on it; use it directly to share out partitions of work that is not read through a consumer.
//
//	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"))
//	for g, err := range m.Generations(ctx) {
//		if err != nil {
//			return err
//		}
//		g.Go(func(ctx context.Context, tp groupmember.TopicPartition) {
//			work(ctx, tp)               // until ctx ends: ErrRevoked, ErrLost, ErrFenced, ErrClosed
//			m.Commit(background, done)  // the partition is still ours until this function returns
//		})
//	}
//
// There are two ways to be told: Generations, with lifetimes as contexts, and a Listener, whose Revoked is confirmed by a
// call. Both may be used at once; a partition is given up when both are done with it.
//
// # What is promised
//
//   - A partition is told lost before anybody else can get it because of us: a member that cannot reach its coordinator
//     gives up at the latest session.timeout.ms after the last heartbeat that got through, counted from when it was sent.
//   - A claim that ended cannot commit: ErrNotOwned. A commit that a rebalance overtakes is repeated for what was kept.
//   - Heartbeats depend on nobody's code. A Listener or a function that takes its time delays a rebalance, up to
//     max.poll.interval.ms, and costs no session.
//   - Close and Leave return by ctx's end; no goroutine is left but one in a Listener that does not return.
//
// # Protocols
//
// Auto takes KIP-848's protocol where the cluster has it (Apache Kafka 4.0 and later) and the classic one elsewhere, or
// when Assignors are given. A group is converted while it runs, in both directions, when members with the other protocol
// join. JoinGroup and SyncGroup, which a broker holds back until the group has come together, use a connection of the
// member's own; heartbeats and commits share the client's Group connection.
//
// # For a newcomer
//
//	machine/            decides everything, does nothing: states, both protocols, what each error means
//	internal/assignor/  how a leader distributes (classic)
//	config.go options.go properties.go validate.go lint.go   what a member can be told
//	member.go           Join, Start, Close; what can be asked
//	driver.go           carries out what the machine decides: requests, calls, transitions
//	claim.go            who works on which partition, and when a revocation is confirmed
//	generations.go listener.go   the two ways to be told
//	commit.go committed.go offset.go   offsets
//	topics.go           metadata: tracking, names of topic ids, patterns
//	inbox.go            functions in order to one goroutine
//
// Goroutines of a member: one that carries out, one that calls the Listener, one that commits, one while the coordinator
// or a name is looked up, one with a pattern (classic). All end with the member.
package groupmember
