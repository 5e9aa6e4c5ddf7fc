package message

// Values that fields take, under the names of the constants in Apache Kafka. They are untyped, so that they fit fields of
// any size.

// IsolationLevel of Fetch and ListOffsets requests.
const (
	IsolationLevelReadUncommitted = 0
	IsolationLevelReadCommitted   = 1
)

// What ListOffsets requests take instead of a timestamp, and as replica id.
const (
	ListOffsetsEarliestPendingUploadTimestamp = -6
	ListOffsetsLatestTieredTimestamp          = -5
	ListOffsetsEarliestLocalTimestamp         = -4
	ListOffsetsMaxTimestamp                   = -3
	ListOffsetsDebuggingReplicaId             = -2
	ListOffsetsEarliestTimestamp              = -2
	ListOffsetsConsumerReplicaId              = -1
	ListOffsetsLatestTimestamp                = -1
)

// Special values of Fetch requests.
const (
	FetchRequestFutureLocalReplicaId    = -3
	FetchRequestDebuggingConsumerId     = -2
	FetchRequestConsumerReplicaId       = -1
	FetchRequestInvalidLogStartOffset   = -1
	FetchRequestOrdinaryConsumerId      = -1
	FetchRequestDefaultResponseMaxBytes = 2147483647
)

// What Fetch responses say where they know no offset or replica.
const (
	FetchResponseInvalidHighWatermark      = -1
	FetchResponseInvalidLastStableOffset   = -1
	FetchResponseInvalidLogStartOffset     = -1
	FetchResponseInvalidPreferredReplicaId = -1
)

// Ids and epochs of fetch sessions (KIP-227): the initial epoch asks for a new session, the final one for none.
const (
	FetchSessionFinalEpoch       = -1
	FetchSessionInitialEpoch     = 0
	FetchSessionInvalidSessionId = 0
)

// What OffsetForLeaderEpoch responses say where there is no such epoch.
const (
	OffsetForLeaderEpochUndefinedEpoch       = -1
	OffsetForLeaderEpochUndefinedEpochOffset = -1
)

// Special values of Metadata responses.
const (
	MetadataAuthorizedOperationsOmitted = -2147483648
	MetadataNoControllerId              = -1
	MetadataNoLeaderId                  = -1
)

// KeyType of FindCoordinator requests.
const (
	CoordinatorTypeGroup       = 0
	CoordinatorTypeTransaction = 1
	CoordinatorTypeShare       = 2
)

// Versions of AddPartitionsToTxn: up to LastClientVersion for clients, from EarliestBrokerVersion for brokers.
const (
	AddPartitionsToTxnLastClientVersion     = 3
	AddPartitionsToTxnEarliestBrokerVersion = 4
)

// What CreateTopics requests take for the defaults of the broker.
const (
	CreateTopicsNoNumPartitions     = -1
	CreateTopicsNoReplicationFactor = -1
)

// Offset of DeleteRecords requests that stands for the high watermark.
const (
	DeleteRecordsHighWatermark = -1
)

// Special values of OffsetCommit requests.
const (
	OffsetCommitDefaultGenerationId  = -1
	OffsetCommitDefaultRetentionTime = -1
	OffsetCommitDefaultTimestamp     = -1
)

// Special values of JoinGroup requests.
const (
	JoinGroupUnknownGenerationId = -1
)

// Member epochs of ConsumerGroupHeartbeat requests (KIP-848).
const (
	ConsumerGroupHeartbeatLeaveGroupStaticMemberEpoch              = -2
	ConsumerGroupHeartbeatLeaveGroupMemberEpoch                    = -1
	ConsumerGroupHeartbeatJoinGroupMemberEpoch                     = 0
	ConsumerGroupHeartbeatConsumerGeneratedMemberIdRequiredVersion = 1
)

// Member epochs of ShareGroupHeartbeat requests (KIP-932).
const (
	ShareGroupHeartbeatLeaveGroupMemberEpoch = -1
	ShareGroupHeartbeatJoinGroupMemberEpoch  = 0
)

// Member epochs of StreamsGroupHeartbeat requests (KIP-1071).
const (
	StreamsGroupHeartbeatLeaveGroupStaticMemberEpoch = -2
	StreamsGroupHeartbeatLeaveGroupMemberEpoch       = -1
	StreamsGroupHeartbeatJoinGroupMemberEpoch        = 0
)

// Codes in the Status of StreamsGroupHeartbeat responses.
const (
	StreamsGroupStatusStaleTopology                = 0
	StreamsGroupStatusMissingSourceTopics          = 1
	StreamsGroupStatusIncorrectlyPartitionedTopics = 2
	StreamsGroupStatusMissingInternalTopics        = 3
	StreamsGroupStatusShutdownApplication          = 4
	StreamsGroupStatusAssignmentDelayed            = 5
	StreamsGroupStatusMissingClientTags            = 6
)

// Epochs of share sessions.
const (
	ShareSessionFinalEpoch   = -1
	ShareSessionInitialEpoch = 0
)

// ShareAcquireMode of ShareFetch requests.
const (
	ShareAcquireModeBatchOptimized = 0
	ShareAcquireModeRecordLimit    = 1
)

// Acknowledge types of ShareFetch and ShareAcknowledge requests.
const (
	AcknowledgeTypeAccept  = 1
	AcknowledgeTypeRelease = 2
	AcknowledgeTypeReject  = 3
	AcknowledgeTypeRenew   = 4
)

// Delivery states of records in share groups.
const (
	RecordStateAvailable    = 0
	RecordStateAcquired     = 1
	RecordStateAcknowledged = 2
	RecordStateArchiving    = 3
	RecordStateArchived     = 4
)

// Types of what has configs.
const (
	ConfigResourceUnknown       = 0
	ConfigResourceTopic         = 2
	ConfigResourceBroker        = 4
	ConfigResourceBrokerLogger  = 8
	ConfigResourceClientMetrics = 16
	ConfigResourceGroup         = 32
)

// Operations of IncrementalAlterConfigs requests.
const (
	AlterConfigSet      = 0
	AlterConfigDelete   = 1
	AlterConfigAppend   = 2
	AlterConfigSubtract = 3
)

// Where a config of a DescribeConfigs response comes from.
const (
	ConfigSourceUnknown                    = 0
	ConfigSourceTopicConfig                = 1
	ConfigSourceDynamicBrokerConfig        = 2
	ConfigSourceDynamicDefaultBrokerConfig = 3
	ConfigSourceStaticBrokerConfig         = 4
	ConfigSourceDefaultConfig              = 5
	ConfigSourceDynamicBrokerLoggerConfig  = 6
	ConfigSourceClientMetricsConfig        = 7
	ConfigSourceGroupConfig                = 8
)

// Types of configs in DescribeConfigs responses.
const (
	ConfigTypeUnknown  = 0
	ConfigTypeBoolean  = 1
	ConfigTypeString   = 2
	ConfigTypeInt      = 3
	ConfigTypeShort    = 4
	ConfigTypeLong     = 5
	ConfigTypeDouble   = 6
	ConfigTypeList     = 7
	ConfigTypeClass    = 8
	ConfigTypePassword = 9
)

// Types of what ACLs protect.
const (
	ResourceTypeUnknown         = 0
	ResourceTypeAny             = 1
	ResourceTypeTopic           = 2
	ResourceTypeGroup           = 3
	ResourceTypeCluster         = 4
	ResourceTypeTransactionalId = 5
	ResourceTypeDelegationToken = 6
	ResourceTypeUser            = 7
)

// How the name of an ACL is matched.
const (
	PatternTypeUnknown  = 0
	PatternTypeAny      = 1
	PatternTypeMatch    = 2
	PatternTypeLiteral  = 3
	PatternTypePrefixed = 4
)

// Operations of ACLs; the authorized operations of responses are sets of bits 1 << operation.
const (
	AclOperationUnknown         = 0
	AclOperationAny             = 1
	AclOperationAll             = 2
	AclOperationRead            = 3
	AclOperationWrite           = 4
	AclOperationCreate          = 5
	AclOperationDelete          = 6
	AclOperationAlter           = 7
	AclOperationDescribe        = 8
	AclOperationClusterAction   = 9
	AclOperationDescribeConfigs = 10
	AclOperationAlterConfigs    = 11
	AclOperationIdempotentWrite = 12
	AclOperationCreateTokens    = 13
	AclOperationDescribeTokens  = 14
	AclOperationTwoPhaseCommit  = 15
)

// Permissions of ACLs.
const (
	AclPermissionUnknown = 0
	AclPermissionAny     = 1
	AclPermissionDeny    = 2
	AclPermissionAllow   = 3
)

// Types of ElectLeaders requests.
const (
	ElectionTypePreferred = 0
	ElectionTypeUnclean   = 1
)

// Kinds of endpoints that DescribeCluster requests ask for.
const (
	EndpointTypeUnknown    = 0
	EndpointTypeBroker     = 1
	EndpointTypeController = 2
)

// Directions of UpdateFeatures requests.
const (
	UpgradeTypeUnknown         = 0
	UpgradeTypeUpgrade         = 1
	UpgradeTypeSafeDowngrade   = 2
	UpgradeTypeUnsafeDowngrade = 3
)

// SCRAM mechanisms of user credentials.
const (
	ScramMechanismUnknown     = 0
	ScramMechanismScramSha256 = 1
	ScramMechanismScramSha512 = 2
)

// Security protocols of listeners.
const (
	SecurityProtocolPlaintext     = 0
	SecurityProtocolSsl           = 1
	SecurityProtocolSaslPlaintext = 2
	SecurityProtocolSaslSsl       = 3
)

// States of transactions in the transaction log.
const (
	TransactionStateEmpty             = 0
	TransactionStateOngoing           = 1
	TransactionStatePrepareCommit     = 2
	TransactionStatePrepareAbort      = 3
	TransactionStateCompleteCommit    = 4
	TransactionStateCompleteAbort     = 5
	TransactionStateDead              = 6
	TransactionStatePrepareEpochFence = 7
)

// States of brokers.
const (
	BrokerStateNotRunning                = 0
	BrokerStateStarting                  = 1
	BrokerStateRecovery                  = 2
	BrokerStateRunning                   = 3
	BrokerStatePendingControlledShutdown = 6
	BrokerStateShuttingDown              = 7
	BrokerStateUnknown                   = 127
)

// Whether the leader of a partition is recovering from an unclean election.
const (
	LeaderRecoveryStateRecovered  = 0
	LeaderRecoveryStateRecovering = 1
)
