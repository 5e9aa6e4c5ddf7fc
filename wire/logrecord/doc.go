// Package logrecord holds the records that Kafka's brokers write into their own logs and files, generated from the files
// in schema, in the same way as package message:
//
//   - metadata records, the values in __cluster_metadata: AppendFramed and ReadFramed, NewMetadataRecord by type;
//   - the coordinators' records in __consumer_offsets, __transaction_state and __share_group_state, a key and a value for
//     each type: AppendKey, AppendValue, ReadKey, ReadValue;
//   - QuorumStateData (the file quorum-state) and ProducerSnapshot (the body of .snapshot files).
//
// Which version of a metadata record is written is the controller's choice, by the metadata.version of the cluster; this
// package writes the one it is told to.
package logrecord
