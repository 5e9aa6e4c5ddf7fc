package machine

import "github.com/ottla-kafka/ottla/wire/errcode"

// api is a kind of request this machine sends.
type api uint8

const (
	initProducerID api = iota
	addPartitions
	addOffsets
	commitOffsets
	endTxn
	describe
	produce // not ours; what a failed batch means
	findTxn
	findGroup
	apiCount
)

var apiNames = [apiCount]string{"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "DescribeTransactions",
	"Produce", "FindCoordinator", "FindCoordinator"}

// verdict is what an error code means, the worst one last: an answer about several partitions means the worst of its
// verdicts.
type verdict uint8

const (
	fine   verdict = iota
	again          // the same request will do later
	soon           // the same, and it will not be long: the last transaction is just ending
	moved          // another broker is the coordinator
	stale          // the group has moved on from the generation given; its owner may have a newer one
	doom           // the transaction can only be aborted
	bump           // the same, and it takes another epoch; where that cannot be had the session is over
	fenced         // somebody else has the transactional id
	fatal          // the session is over
)

var verdictNames = [...]string{"fine", "again", "soon", "moved", "stale", "doom", "bump", "fenced", "fatal"}

// String is the verdict's name.
func (v verdict) String() string { return verdictNames[v] }

// verdicts says for each request what each code means: what Kafka's own producer (4.4, TransactionManager) makes of it,
// except where the comment says otherwise. A code that is not here is again if Kafka calls it retriable, and else the
// default of the request.
var verdicts = [apiCount]map[errcode.Code]verdict{
	initProducerID: {
		errcode.NotCoordinator:                     moved,
		errcode.CoordinatorNotAvailable:            moved,
		errcode.ConcurrentTransactions:             soon,
		errcode.InvalidProducerEpoch:               fenced,
		errcode.ProducerFenced:                     fenced,
		errcode.TransactionalIdAuthorizationFailed: fatal, // Kafka: initTransactions may be called again; here New may
		errcode.ClusterAuthorizationFailed:         fatal, // the same
		errcode.TransactionAbortable:               again, // Kafka: abortable, with no transaction there
	},
	addPartitions: {
		errcode.NotCoordinator:                     moved,
		errcode.CoordinatorNotAvailable:            moved,
		errcode.ConcurrentTransactions:             soon,
		errcode.InvalidProducerEpoch:               fenced,
		errcode.ProducerFenced:                     fenced,
		errcode.TransactionalIdAuthorizationFailed: fatal,
		errcode.InvalidTxnState:                    fatal,
		errcode.InvalidProducerIdMapping:           fatal,
		errcode.UnknownProducerId:                  bump,
		errcode.TopicAuthorizationFailed:           doom,
		errcode.OperationNotAttempted:              doom, // another partition of the request has the reason
		errcode.TransactionAbortable:               doom,
	},
	addOffsets: {
		errcode.NotCoordinator:                     moved,
		errcode.CoordinatorNotAvailable:            moved,
		errcode.ConcurrentTransactions:             soon,
		errcode.InvalidProducerEpoch:               fenced,
		errcode.ProducerFenced:                     fenced,
		errcode.TransactionalIdAuthorizationFailed: fatal,
		errcode.InvalidTxnState:                    fatal,
		errcode.InvalidProducerIdMapping:           fatal,
		errcode.UnknownProducerId:                  bump,
		errcode.GroupAuthorizationFailed:           doom,
		errcode.TransactionAbortable:               doom,
	},
	commitOffsets: {
		errcode.NotCoordinator:                     moved,
		errcode.CoordinatorNotAvailable:            moved,
		errcode.RequestTimedOut:                    moved,
		errcode.ConcurrentTransactions:             soon,
		errcode.InvalidProducerEpoch:               fenced,
		errcode.ProducerFenced:                     fenced,
		errcode.TransactionalIdAuthorizationFailed: fatal,
		errcode.UnsupportedForMessageFormat:        fatal,
		errcode.GroupAuthorizationFailed:           doom,
		errcode.FencedInstanceId:                   doom,
		errcode.TransactionAbortable:               doom,
		errcode.GroupIdNotFound:                    doom,
		// Kafka: abortable at once. Here the group's member is asked for its generation again first, since an epoch that
		// moved while the request was on its way, with the partitions still held, is no reason to abort.
		errcode.IllegalGeneration:   stale,
		errcode.UnknownMemberId:     stale,
		errcode.RebalanceInProgress: stale,
		errcode.StaleMemberEpoch:    stale,
		errcode.FencedMemberEpoch:   stale,
		// Kafka: fatal, though nothing is wrong with the session.
		errcode.InvalidCommitOffsetSize:  doom,
		errcode.OffsetMetadataTooLarge:   doom,
		errcode.TopicAuthorizationFailed: doom,
		errcode.InvalidGroupId:           doom,
	},
	endTxn: {
		errcode.NotCoordinator:                     moved,
		errcode.CoordinatorNotAvailable:            moved,
		errcode.ConcurrentTransactions:             soon,
		errcode.InvalidProducerEpoch:               fenced,
		errcode.ProducerFenced:                     fenced,
		errcode.TransactionalIdAuthorizationFailed: fatal,
		errcode.InvalidTxnState:                    fatal,
		errcode.InvalidProducerIdMapping:           fatal,
		errcode.UnknownProducerId:                  bump,
		errcode.TransactionAbortable:               doom,
	},
	describe: {},
	produce: {
		errcode.ClusterAuthorizationFailed:         fatal,
		errcode.TransactionalIdAuthorizationFailed: fatal,
		errcode.ProducerFenced:                     fenced,
		errcode.InvalidProducerIdMapping:           fatal,
		errcode.UnsupportedVersion:                 fatal,
		// INVALID_PRODUCER_EPOCH is not fenced here: the leader may be behind the coordinator, which has the last word
		// when the transaction is aborted (KIP-588).
		errcode.InvalidProducerEpoch: bump,
		errcode.TransactionAbortable: doom,
	},
	findTxn: {
		errcode.TransactionalIdAuthorizationFailed: fatal,
	},
	findGroup: {
		errcode.GroupAuthorizationFailed: doom,
		errcode.TransactionAbortable:     doom,
		errcode.InvalidGroupId:           doom,
	},
}

// otherwise is what a code means that the table does not have and that is not retriable.
var otherwise = [apiCount]verdict{
	initProducerID: fatal,
	addPartitions:  doom,
	addOffsets:     fatal,
	commitOffsets:  fatal,
	endTxn:         fatal,
	describe:       fatal,
	produce:        bump,
	findTxn:        fatal,
	findGroup:      fatal,
}

func judge(a api, c errcode.Code) verdict {
	if c == errcode.None {
		return fine
	}
	if v, ok := verdicts[a][c]; ok {
		return v
	}
	if c.Retriable() && a != produce {
		return again
	}
	return otherwise[a]
}

// hints say what to do about a code, where it is not obvious.
var hints = map[errcode.Code]string{
	errcode.InvalidTransactionTimeout:          "transaction.timeout.ms is above the broker's transaction.max.timeout.ms (15 minutes unless set); lower the one or raise the other",
	errcode.TransactionalIdAuthorizationFailed: "the principal needs Write and Describe on the transactional id",
	errcode.ClusterAuthorizationFailed:         "the principal needs Write on the transactional id, and on brokers before 2.8 IdempotentWrite on the cluster",
	errcode.TopicAuthorizationFailed:           "the principal needs Write on the topic",
	errcode.GroupAuthorizationFailed:           "the principal needs Read on the group",
	errcode.InvalidTxnState:                    "the coordinator has ended the transaction already: transaction.timeout.ms ran out, or an administrator aborted it",
	errcode.InvalidProducerIdMapping:           "the coordinator has forgotten the id, which happens when it is not used for transactional.id.expiration.ms (7 days); make a new session",
	errcode.UnknownMemberId:                    "the consumer is not a member of the group any more; what it read belongs to others",
	errcode.IllegalGeneration:                  "the group has rebalanced; what was read may belong to others",
	errcode.FencedInstanceId:                   "another member with the same group.instance.id has joined",
	errcode.TransactionAbortable:               "abort and run the transaction again",
}
