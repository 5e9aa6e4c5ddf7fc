// Package assignor has Kafka's client-side assignors as pure functions.
package assignor
