package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes, the same for every command.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitConnect = 3
)

// cli is the command line; kong derives parsing and help from it.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run a Kafka broker on this machine until it is interrupted."`
	DumpLog dumpLogCmd `cmd:"" name:"dump-log" help:"Print what a broker's files hold: .log .index .timeindex .txnindex .snapshot .checkpoint."`
	Version versionCmd `cmd:"" help:"Print the version of this binary and of the protocol it speaks."`
}

// streams are where a command writes: results to out, everything else to err.
type streams struct{ out, err io.Writer }

// exitError carries the exit code of a failure that is not plain exitFailed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code. It is main without the process, for tests.
func run(ctx context.Context, args []string, io streams) int {
	var c cli
	done := -1
	parser, err := kong.New(&c,
		kong.Name("ottla"),
		kong.Description("A complete Kafka broker in one binary, and tools for its files."),
		kong.Writers(io.out, io.err),
		kong.Exit(func(code int) { done = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(io),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintf(io.err, "ottla: %v\n", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if done >= 0 { // --help was printed
		return done
	}
	if err != nil {
		fmt.Fprintf(io.err, "ottla: %v\nottla: see 'ottla --help'\n", err)
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintf(io.err, "ottla: %v\n", err)
		if e := (*exitError)(nil); errors.As(err, &e) {
			return e.code
		}
		return exitFailed
	}
	return exitOK
}
