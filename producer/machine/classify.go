package machine

import "github.com/ottla-kafka/ottla/wire/errcode"

// trait is what an error code in a produce answer tells.
type trait uint8

const (
	// again: the same batch may succeed later.
	again trait = 1 << iota
	// refused: the broker decided before appending, so this attempt is certainly not in
	// the log. Without it the batch may be there: NOT_LEADER_OR_FOLLOWER for
	// one also answers a batch that was appended and whose leader then changed.
	refused
	// stale: the metadata is out of date.
	stale
	// sequence: the broker did not expect this sequence, epoch or producer id.
	sequence
	// newID: an epoch of ours is not enough, another producer id is needed.
	newID
	// large: smaller pieces may pass.
	large
	// success: the batch is in the log.
	success
)

// traits lists the codes that need more than the retriable column of Kafka's
// error table. Any other code: again if that table says retriable, else final and
// in doubt.
var traits = map[errcode.Code]trait{
	errcode.None:                               success,
	errcode.DuplicateSequenceNumber:            success,
	errcode.OutOfOrderSequenceNumber:           again | refused | sequence,
	errcode.UnknownProducerId:                  again | refused | sequence,
	errcode.InvalidProducerEpoch:               again | refused | sequence | newID,
	errcode.ProducerFenced:                     again | refused | sequence | newID,
	errcode.InvalidProducerIdMapping:           again | refused | sequence | newID,
	errcode.MessageTooLarge:                    refused | large,
	errcode.RecordListTooLarge:                 refused | large,
	errcode.NotEnoughReplicas:                  again | refused,
	errcode.CorruptMessage:                     again | refused,
	errcode.LeaderNotAvailable:                 again | refused | stale,
	errcode.UnknownTopicOrPartition:            again | refused | stale,
	errcode.UnknownTopicId:                     again | refused | stale,
	errcode.InconsistentTopicId:                again | refused | stale,
	errcode.NotLeaderOrFollower:                again | stale,
	errcode.FencedLeaderEpoch:                  again | stale,
	errcode.UnknownLeaderEpoch:                 again | stale,
	errcode.KafkaStorageError:                  again | stale,
	errcode.ReplicaNotAvailable:                again | stale,
	errcode.InvalidTopicException:              refused,
	errcode.TopicAuthorizationFailed:           refused,
	errcode.ClusterAuthorizationFailed:         refused,
	errcode.InvalidRequiredAcks:                refused,
	errcode.InvalidTimestamp:                   refused,
	errcode.InvalidRecord:                      refused,
	errcode.UnsupportedCompressionType:         refused,
	errcode.UnsupportedForMessageFormat:        refused,
	errcode.UnsupportedVersion:                 refused,
	errcode.PolicyViolation:                    refused,
	errcode.InvalidTxnState:                    refused,
	errcode.InvalidRequest:                     refused,
	errcode.ThrottlingQuotaExceeded:            again | refused,
	errcode.ConcurrentTransactions:             again | refused,
	errcode.TransactionAbortable:               refused,
	errcode.TransactionalIdAuthorizationFailed: refused,
}

func classify(c errcode.Code) trait {
	if t, ok := traits[c]; ok {
		return t
	}
	if c.Retriable() {
		return again
	}
	return 0
}
