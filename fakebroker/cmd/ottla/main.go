package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConnect     = 3
	exitInterrupted = 130
)

// cli is the command line; kong derives parsing and help from it.
type cli struct {
	Serve     serveCmd     `cmd:"" help:"Run a Kafka broker on this machine until it is interrupted."`
	Topics    topicsCmd    `cmd:"" aliases:"topic" help:"List, create, describe, alter and delete topics."`
	Produce   produceCmd   `cmd:"" help:"Write lines or JSON to a topic."`
	Consume   consumeCmd   `cmd:"" help:"Print the records of topics."`
	Groups    groupsCmd    `cmd:"" aliases:"group" help:"List and describe consumer groups, their members and lag; reset their offsets; delete them."`
	Txns      txnsCmd      `cmd:"" aliases:"txn,transactions" help:"List and describe transactions; find those that hang, and abort them."`
	Producers producersCmd `cmd:"" aliases:"producer" help:"Show the producers that partitions know."`
	DumpLog   dumpLogCmd   `cmd:"" name:"dump-log" help:"Print what a broker's files hold: .log .index .timeindex .txnindex .snapshot .checkpoint."`
	Version   versionCmd   `cmd:"" help:"Print the version of this binary and of the protocol it speaks."`
}

// streams are where a command reads and writes: results go to out, everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// exitError carries the exit code of a failure that is not plain exitFailed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code. It is main without the process, for tests.
func run(ctx context.Context, args []string, io streams) int {
	var c cli
	done := -1
	parser, err := kong.New(&c,
		kong.Name("ottla"),
		kong.Description("A complete Kafka broker in one binary, and tools for any Kafka cluster."),
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
	args = habits(args)
	parsed, err := parser.Parse(negativeNumbers(args))
	if done >= 0 { // --help was printed
		return done
	}
	if err != nil {
		// An enum of which one value stands for "not given" says so in its list.
		fmt.Fprintf(io.err, "ottla: %s\nottla: see '%s --help'\n", strings.Replace(err.Error(), `must be one of "",`, "must be one of ", 1), commandOf(err))
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return exitInterrupted // by the user, who knows
		}
		fmt.Fprintf(io.err, "ottla: %v\n", err)
		if e := (*exitError)(nil); errors.As(err, &e) {
			return e.code
		}
		return exitFailed
	}
	return exitOK
}

// habits are command lines of other tools, and what they are here.
func habits(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help")
	case args[0] == "--version" || args[0] == "-v":
		return []string{"version"}
	}
	return args
}

// commandOf is as much of a command as could be understood: whose help to see.
func commandOf(err error) string {
	words := []string{"ottla"}
	if e := (*kong.ParseError)(nil); errors.As(err, &e) {
		for _, p := range e.Context.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(words, " ")
}

// numeric are the flags that take numbers, by each of their names.
var numeric = map[string]string{"-o": "--offset", "--offset": "--offset", "--shift-by": "--shift-by", "--to-offset": "--to-offset", "--port": "--port",
	"-n": "--count", "--count": "--count", "--partitions": "--partitions", "-r": "--replication-factor", "--replication-factor": "--replication-factor"}

// negativeNumbers lets numbers below zero follow the flags that take them, as in -o -5: kong would see a flag.
func negativeNumbers(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		name, takes := numeric[args[i]]
		if takes && i+1 < len(args) {
			if _, err := strconv.ParseInt(args[i+1], 10, 64); err == nil && strings.HasPrefix(args[i+1], "-") {
				out = append(out, name+"="+args[i+1])
				i++
				continue
			}
		}
		out = append(out, args[i])
	}
	return out
}
