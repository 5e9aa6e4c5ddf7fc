// Package storage keeps partitions on a disk, or in memory, in the files of
// Apache Kafka 4.4: a folder that either of the two has written the other can
// open. It knows offsets, epochs, producers and transactions, but no requests,
// no replicas and no topics beyond their names and ids.
//
// # A log dir
//
//	data/
//	  meta.properties  .lock  .kafka_cleanshutdown        dir_files.go
//	  recovery-point-offset-checkpoint                    checkpoint.go
//	  replication-offset-checkpoint  (high watermarks)
//	  log-start-offset-checkpoint  cleaner-offset-checkpoint
//	  orders-0/
//	    partition.metadata                                dir_files.go
//	    leader-epoch-checkpoint                           checkpoint.go
//	    00000000000000000000.log                          record batches (wire/record)
//	    00000000000000000000.index                        offset_index.go
//	    00000000000000000000.timeindex                    time_index.go
//	    00000000000000000000.txnindex                     txn_index.go
//	    00000000000000004711.log ...                      the next segment
//	    00000000000000004711.snapshot                     producer_snapshot.go
//	  orders-1.0a1b...-delete/                            a deleted log, about to go
//
// # Map
//
//   - manager.go, manager_load.go, manager_tick.go   Manager: log dirs, all logs, timed work
//   - log.go            Log: what readers see, slots of writer and flusher
//   - log_open.go, log_recover.go   opening, after a clean stop and after none
//   - log_validate.go, log_validate_records.go   what a leader accepts from a client (pure)
//   - log_append.go, log_roll.go    the one place where a log grows
//   - log_read.go, log_search.go    reads by offset, searches by time
//   - log_flush.go, log_retention.go, log_truncate.go
//   - segment.go, segment_index.go, cursor.go, batch_reader.go
//   - producer_entry.go, producer_state.go, producer_verification.go   idempotence and transactions (pure)
//   - epoch_cache.go    leader epochs (pure)
//   - the formats, each drawn in its file
//   - dump/             the files in words, for ottla dump-log
//
// # The way of a batch
//
//	AppendAsLeader    validator: checksum, records, times, codec      no lock
//	                  writer's slot: offsets, producer check, roll,
//	                  ONE write to the .log                           slot, no mutex
//	                  publish: log end, indexes, producers, LSO       mutex, memory only
//	Read              take what is published, index, a few headers;
//	                  the bytes go out as slices or as a file region  never copied
//	Flush, Tick       fsync, index files, epochs, recovery point      flusher's slot
//
// Indexes and leader epochs reach their files on flush, roll and close only:
// what was not flushed is scanned again after a crash anyway.
//
// # Promises
//
// An append is visible when it returns and survives the process; it survives a
// power cut once a Flush behind it has returned (flush.messages, flush.ms, or
// the segment was finished). Recovery keeps the longest valid prefix and gives
// the same result when done twice. After an error of the disk nothing in that
// log dir is written any more until it is opened again: what a failed fsync
// leaves is unknown.
//
// # Not here
//
// Compaction: cleanup.policy=compact makes keys required, and what a compaction
// of Kafka's left half done is finished or undone on opening, but nothing is
// compacted yet. Message formats before magic 2 are not read from a log. Who
// asks the transaction coordinator (KIP-890) is the server; the log only keeps
// the guards.
package storage
