// Package controller decides what changes in a cluster's metadata: topics, partitions, configs, registrations, features,
// producer ids.
//
// # Shape
//
// A [Controller] is a pure machine of the replicated kind: Handle looks at the newest image and proposes records and a
// response, and changes nothing. The runtime (package driver) appends the records to the metadata log through raft,
// applies them with image.Delta.Apply, which is the only thing that changes an image, and lets the response go once the
// records are committed. So the same request on the same image always gives the same records, apart from new topic ids
// and where placement starts, which come from the two sources of randomness in Options.
//
//	request ──Handle(now, view)──► records + response
//	                                  │ append, commit
//	                                  ▼
//	                    image.Apply on every node ──► response leaves
//
// # Map
//
//   - controller.go      Controller, View, Result, dispatch by request
//   - bootstrap.go       the records of a new cluster
//   - create_topics.go, delete_topics.go, create_partitions.go   topics
//   - names.go           topic names: what is valid, what collides
//   - placement.go       which brokers get a new partition's replicas
//   - configs.go         incremental and old-style changes of configs
//   - brokers.go         registration, heartbeat, fencing, controlled shutdown, unregistering
//   - partition_change.go  the one place where a changed partition is worked out: ISR, ELR, leader
//   - producer_ids.go    blocks of 1,000 ids
//   - features.go        finalised levels
//
// # States of a broker
//
//	           registration                 heartbeat, caught up
//	(unknown) ─────────────► fenced ──────────────────────────────► active
//	                           ▲  ▲                                   │
//	    registration, new      │  └── heartbeat wants to be fenced ───┤
//	    incarnation ───────────┘                                      │ heartbeat wants to shut down
//	                           └────────── shutting down ◄────────────┘
//
// Becoming fenced takes the broker out of every ISR (its partitions get another leader, or none and keep it as eligible
// replica, KIP-966); becoming active gives leaderless partitions that it may lead back to it.
//
// # Records, in the order in which one request writes them
//
//	CreateTopics        per topic: TopicRecord, ConfigRecord*, PartitionRecord*
//	DeleteTopics        RemoveTopicRecord per topic (configs and partitions go with it)
//	CreatePartitions    PartitionRecord per new partition
//	alter configs       ConfigRecord per changed config (value null = removed); ClearElrRecord when min.insync.replicas
//	                    changes while ELR is on
//	BrokerRegistration  RegisterBrokerRecord (fenced; its broker epoch is its own offset), PartitionChangeRecord*
//	BrokerHeartbeat     BrokerRegistrationChangeRecord, PartitionChangeRecord*
//	AllocateProducerIds ProducerIdsRecord
package controller
