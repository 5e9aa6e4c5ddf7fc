package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// kafkaVersion is the release whose protocol definitions, defaults and answers this build follows.
const kafkaVersion = "4.4.0"

// versionCmd prints what this binary is.
type versionCmd struct{}

// Run prints one line: own version, Kafka's, Go's.
func (versionCmd) Run(io streams) error {
	own := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		own = info.Main.Version
	}
	_, err := fmt.Fprintf(io.out, "ottla %s (Apache Kafka %s protocol, %s)\n", own, kafkaVersion, runtime.Version())
	return err
}
