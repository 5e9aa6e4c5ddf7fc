package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/message"
)

// connection are the flags of every command that talks to a cluster.
type connection struct {
	Bootstrap     string            `name:"bootstrap-server" short:"b" env:"OTTLA_BOOTSTRAP" placeholder:"HOST:PORT,..." help:"Brokers to start from (default: bootstrap.servers of the properties, else localhost:9092)."`
	CommandConfig string            `name:"command-config" placeholder:"FILE" help:"A Java client's properties file; keys of producers and consumers may stand in it, too."`
	Property      map[string]string `name:"property" short:"X" placeholder:"KEY=VALUE" mapsep:"none" help:"One property by Kafka's name, over those of the file (may be repeated)."`
}

const (
	defaultBootstrap = "localhost:9092"
	// connectTimeout is how long a command tries to reach a broker, unless default.api.timeout.ms is set.
	connectTimeout = 10 * time.Second
	// silence is how long it does so without a word.
	silence = 3 * time.Second
)

// session is a command's connection to a cluster.
type session struct {
	cl       *client.Client
	adm      *admin.Admin
	producer producer.Config
	txn      txn.Config // without the producer
	consumer consumer.Config
}

// open connects. It fails with exitUsage for wrong properties, with exitConnect when no broker answers or the login is
// refused.
func (c *connection) open(ctx context.Context, io streams) (*session, error) {
	cfg, s := client.DefaultConfig(), &session{producer: producer.DefaultConfig(), txn: txn.DefaultConfig(), consumer: consumer.DefaultConfig()}
	cfg.AutoCreateTopics = false // a misspelt name shall not become a topic
	properties, err := c.properties()
	if err == nil {
		err = client.LoadProperties(properties, client.ClientProperties().Bind(&cfg), sending().Bind(&s.producer), txn.Properties().Bind(&s.txn), consumer.Properties().Bind(&s.consumer))
	}
	if err != nil {
		if c.CommandConfig != "" {
			err = fmt.Errorf("%w\nottla: properties are from %s and -X", err, c.CommandConfig)
		}
		return nil, &exitError{exitUsage, err}
	}
	switch {
	case c.Bootstrap != "":
		cfg.Seeds = strings.Split(c.Bootstrap, ",")
	case len(cfg.Seeds) == 0:
		cfg.Seeds = []string{defaultBootstrap}
	}
	watch := &dialWatch{}
	cfg.Observers = append(cfg.Observers, watch)
	if s.cl, err = client.New(func(out *client.Config) { *out = cfg }); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	s.adm = admin.New(s.cl)
	patience := connectTimeout
	if _, set := properties["default.api.timeout.ms"]; set {
		patience = cfg.APITimeout
	}
	if err := s.reach(ctx, io, patience, watch); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// sending are the properties of producers without those that transactions have taken over.
func sending() client.PropertyTable[producer.Config] {
	return slices.DeleteFunc(producer.Properties(), func(p client.Property[producer.Config]) bool {
		_, taken := txn.Properties().Lookup(p.Key)
		return taken
	})
}

// properties are those of the file with those of the command line over them.
func (c *connection) properties() (map[string]string, error) {
	properties := map[string]string{}
	if c.CommandConfig != "" {
		f, err := os.Open(c.CommandConfig)
		if err != nil {
			return nil, fmt.Errorf("--command-config: %w", err)
		}
		defer f.Close()
		if properties, err = client.ReadProperties(f); err != nil {
			return nil, fmt.Errorf("--command-config %s: %w", c.CommandConfig, err)
		}
	}
	for k, v := range c.Property {
		properties[k] = v
	}
	return properties, nil
}

// reach waits until a broker has answered and says after a while why none does.
func (s *session) reach(ctx context.Context, io streams, patience time.Duration, watch *dialWatch) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { // ends with its request, which ends with bounded
		req := message.NewMetadataRequest()
		req.Topics = []message.MetadataRequestTopic{} // none
		_, err := s.cl.Request(bounded, client.AnyBroker().Versions(1, 0), req)
		done <- err
	}()
	ticker := time.NewTicker(silence)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if addr, err := watch.last(); err != nil {
				fmt.Fprintf(io.err, "ottla: still trying %s: %v\n", addr, err)
			}
			continue
		case err := <-done:
			if err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			seeds := strings.Join(s.cl.Config().Seeds, ",")
			if _, cause := watch.last(); cause != nil && errors.Is(err, context.DeadlineExceeded) {
				err = cause // what a connection failed of says more than that time is over
			}
			return &exitError{exitConnect, fmt.Errorf("cannot connect to %s: %w\nottla: is a broker listening there? Name another with -b HOST:PORT or in OTTLA_BOOTSTRAP; TLS and logins are set by --command-config FILE or -X key=value", seeds, err)}
		}
	}
}

// close ends the session, whatever ended the command.
func (s *session) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	s.cl.Close(ctx)
}

// dialWatch keeps why the last attempt to connect failed.
type dialWatch struct {
	client.NopObserver
	mu   sync.Mutex
	addr string
	err  error
}

// Connected implements client.Observer.
func (w *dialWatch) Connected(e client.ConnectEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addr, w.err = e.Addr, e.Err
}

func (w *dialWatch) last() (addr string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addr, w.err
}

// on runs a command's work on a connection.
func (c *connection) on(ctx context.Context, io streams, work func(s *session) error) error {
	s, err := c.open(ctx, io)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	err = work(s)
	if errors.Is(err, client.ErrAuth) {
		return &exitError{exitConnect, err}
	}
	return err
}
