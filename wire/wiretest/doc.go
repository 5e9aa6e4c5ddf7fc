// Package wiretest helps to test code that speaks Kafka's protocol, as httptest does for HTTP.
//
//	Peer       a scripted broker, or several, in memory: a function answers the requests
//	Golden     frames kept as readable files beside the tests
//	Stories    scripts of machines, kept with what came of them
//	Tap        a dial function that writes down what passes, and Replay, which answers with it
//
// A Peer opens no socket and reads no clock, so it works in testing/synctest. It knows nothing of Kafka beyond
// ApiVersions and Metadata, which it answers by itself when the script does not.
package wiretest
