//go:build harness

package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
)

func init() {
	brokerKinds = append(brokerKinds,
		brokerKind{name: "ottla", start: func(port int, _ string) (*exec.Cmd, error) { return startOttla(port) }},
		brokerKind{name: "ottla-disk", prepare: emptyFolder, start: func(port int, dir string) (*exec.Cmd, error) { return startOttla(port, "--data", dir) }})
}

// startOttla runs the binary that $OTTLA names. The harness tries to produce until it can, so nobody waits for the ready
// line.
func startOttla(port int, args ...string) (*exec.Cmd, error) {
	bin := os.Getenv("OTTLA")
	if bin == "" {
		return nil, errors.New("OTTLA is not set: the path of the ottla binary")
	}
	cmd := exec.Command(bin, append([]string{"serve", "--port", strconv.Itoa(port)}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

func emptyFolder(_ int, dir string) error {
	return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}
