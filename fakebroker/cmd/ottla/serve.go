package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// serveCmd runs one broker with controller on 127.0.0.1.
type serveCmd struct {
	Port     int               `default:"9092" help:"TCP port on 127.0.0.1; 0 takes a free one."`
	Data     *string           `placeholder:"DIR" help:"Folder that keeps the data, in Apache Kafka's own format; without it everything is held in memory and gone at the end."`
	Topic    []string          `placeholder:"NAME:PARTITIONS" help:"Create this topic if it does not exist (may be repeated)."`
	Config   map[string]string `placeholder:"KEY=VALUE" help:"Broker configuration by Kafka's names, as in server.properties (may be repeated)." mapsep:"none"`
	Feature  map[string]int16  `placeholder:"NAME=LEVEL" help:"Level of a feature in a new cluster, as of 'kafka-storage format --feature', such as transaction.version=1 (may be repeated)." mapsep:"none"`
	Sasl     []string          `placeholder:"USER:PASSWORD" sep:"none" help:"Ask clients to log in with SASL/PLAIN as one of these users (may be repeated)."`
	TLS      string            `name:"tls" placeholder:"DIR" help:"Speak TLS with DIR/tls.crt and DIR/tls.key (PEM)."`
	LogLevel string            `default:"warn" enum:"debug,info,warn,error" help:"What to tell on stderr: debug, info, warn or error."`
}

// closeTimeout bounds a clean stop; after it the next start recovers the logs as after a crash.
const closeTimeout = 30 * time.Second

// Run serves until ctx ends (SIGINT, SIGTERM), then stops cleanly: data flushed, folder marked as cleanly shut down.
func (c *serveCmd) Run(ctx context.Context, io streams) error {
	opts, err := c.options(io)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	broker, err := fakebroker.New(opts...)
	if err != nil {
		return &exitError{startCode(err), fmt.Errorf("serve: %w%s", err, c.advice(err))}
	}
	// The one line that scripts wait for; it is printed when the listener answers requests.
	fmt.Fprintf(io.out, "ready bootstrap=%s\n", strings.Join(broker.Addrs(), ","))
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := broker.Close(closing); err != nil {
		return fmt.Errorf("serve: stopping: %w", err)
	}
	return nil
}

// startCode is the exit code for a broker that did not start: usage for a wrong key or value, connect for an address that
// cannot be had, failed for the rest, such as a data folder in use.
func startCode(err error) int {
	var unknown *config.UnknownKeyError
	var invalid *config.InvalidValueError
	var address *net.OpError
	switch {
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.Is(err, errcode.InvalidTopicException):
		return exitUsage
	case errors.As(err, &address):
		return exitConnect
	}
	return exitFailed
}

// advice is a line on what to do, where there is something.
func (c *serveCmd) advice(err error) string {
	line := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		line = "another program listens there: stop it, or choose another --port; --port 0 takes a free one"
	case errors.Is(err, vfs.ErrLocked):
		line = "a broker is running on this data folder: stop it, or name another folder with --data"
	case c.Data != nil && errors.Is(err, fs.ErrPermission):
		line = "this user may not read and write the data folder: see its owner and mode, or name another folder with --data"
	case c.Data != nil && errors.Is(err, syscall.ENOTDIR):
		line = "--data wants a folder, and it need not exist"
	case errors.Is(err, fs.ErrPermission):
		line = "this user may not listen there: choose a --port from 1024 on"
	}
	if line != "" {
		line = "\nottla: " + line
	}
	return line
}

// given are broker configurations that flags give, or that are fixed here.
var given = map[string]string{
	"log.dirs": "use --data", "log.dir": "use --data", "metadata.log.dir": "it is in the folder of --data",
	"listeners": "serve listens on 127.0.0.1: use --port", "advertised.listeners": "clients are told where serve listens: use --port",
	"listener.security.protocol.map": "use --sasl and --tls", "process.roles": "serve is broker and controller",
	"controller.listener.names": "the controller is in the same process", "controller.quorum.voters": "the controller is in the same process",
}

// options turns flags into broker options; its errors are usage errors.
func (c *serveCmd) options(io streams) ([]fakebroker.Option, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	opts := []fakebroker.Option{
		fakebroker.Listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port))),
		fakebroker.Logger(slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: level}))),
	}
	if c.Port < 0 || c.Port > 65535 {
		return nil, fmt.Errorf("--port %d: want a TCP port up to 65535, or 0 for a free one", c.Port)
	}
	if c.Data != nil {
		if *c.Data == "" { // an unset variable of a script, most likely, whose data would be gone at the end
			return nil, errors.New("--data has no name of a folder: give one, or leave the flag out to hold everything in memory")
		}
		opts = append(opts, fakebroker.Dir(*c.Data))
	}
	for k, v := range c.Config {
		if instead, ok := given[k]; ok {
			return nil, fmt.Errorf("--config %s: it cannot be set: %s", k, instead)
		}
		opts = append(opts, fakebroker.Config(k, v))
	}
	if _, err := image.ChosenLevels(c.Feature); err != nil {
		return nil, fmt.Errorf("--feature: %w", err)
	}
	for name, level := range c.Feature {
		opts = append(opts, fakebroker.Feature(name, level))
	}
	topics := map[string]bool{}
	for _, t := range c.Topic {
		name, partitions, err := parseTopic(t)
		if err == nil && topics[name] {
			err = fmt.Errorf("--topic %s is given twice", name)
		}
		if err != nil {
			return nil, err
		}
		topics[name] = true
		opts = append(opts, fakebroker.Topic(name, partitions))
	}
	for _, u := range c.Sasl {
		name, password, ok := strings.Cut(u, ":")
		if !ok || name == "" {
			return nil, errors.New("--sasl: want USER:PASSWORD, such as ann:secret")
		}
		opts = append(opts, fakebroker.User(name, password))
	}
	if c.TLS != "" {
		cert, err := tls.LoadX509KeyPair(filepath.Join(c.TLS, "tls.crt"), filepath.Join(c.TLS, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("--tls %s: %w", c.TLS, err)
		}
		opts = append(opts, fakebroker.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))
	}
	return opts, nil
}

// parseTopic reads NAME or NAME:PARTITIONS. A topic name holds no colon, so the first one ends it.
func parseTopic(s string) (name string, partitions int, err error) {
	name, count, ok := strings.Cut(s, ":")
	if !ok {
		return name, 1, nil
	}
	partitions, err = strconv.Atoi(count)
	if err != nil || partitions < 1 || name == "" {
		return "", 0, fmt.Errorf("--topic %q: want NAME:PARTITIONS, such as orders:6", s)
	}
	return name, partitions, nil
}
