// Package hash holds the hash functions that are part of Kafka's protocol: murmur2 places keyed records, Java's string
// hash finds coordinators, CRC-32C guards batches. All are pure functions.
package hash
