// Package vfs is the disk seam of the broker: everything that storage and
// raft keep goes through an FS, so that a test can hold the disk in memory,
// count what is written, make it slow, full or faulty, and cut the power.
//
// # Map
//
//   - fs.go      FS and File: the contract, method by method
//   - os.go      OSFS: the real disk
//   - mem.go, memfile.go   MemFS: the same semantics in memory; default of tests
//   - crash.go   what a MemFS holds after the power was cut
//   - process.go the hold of one process, which can be killed
//   - fault.go   FaultFS: errors, short writes and delays on chosen calls
//   - count.go   CountFS: how many calls, how many bytes, by kind and suffix
//
// # Durability
//
// Three things have to be made durable separately, as POSIX says: the bytes
// of a file (File.Sync), the file's name in its folder (FS.SyncDir), and the
// folder's name in its parent (FS.SyncDir of the parent). A killed process
// loses nothing of what was written; a power cut loses what was not synced.
// MemFS.Crash plays the second one.
//
// # Zero copy
//
// A reader that wants to hand stored bytes on without copying them asks the
// File for more than File promises:
//
//   - [Slicer]: the bytes are in memory already, take the slices;
//   - [Descriptor]: the bytes are behind a descriptor, use sendfile with an
//     explicit offset.
//
// A wrapper forwards what the wrapped file has. Both may be used while the
// file is appended to, truncated, renamed or removed.
package vfs
