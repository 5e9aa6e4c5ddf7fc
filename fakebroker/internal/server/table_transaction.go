package server

import "github.com/ottla-kafka/ottla/wire"

// transactionHandlers are the APIs about transactions. Those about one go to the coordinator of its transactional id, on
// this broker or not: then the answer is NOT_COORDINATOR.
var transactionHandlers = map[wire.Key]handler{
	wire.KeyAddPartitionsToTxn:   handleAddPartitionsToTxn,
	wire.KeyAddOffsetsToTxn:      handleAddOffsetsToTxn,
	wire.KeyEndTxn:               handleEndTxn,
	wire.KeyWriteTxnMarkers:      handleWriteTxnMarkers,
	wire.KeyTxnOffsetCommit:      handleTxnOffsetCommit,
	wire.KeyDescribeTransactions: handleDescribeTransactions,
	wire.KeyListTransactions:     handleListTransactions,
}
