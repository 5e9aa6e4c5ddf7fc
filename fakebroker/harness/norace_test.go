//go:build !race

package harness_test

// raceEnabled says that the race detector is on, under which everything takes many times as long.
const raceEnabled = false
