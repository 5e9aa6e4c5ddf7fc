package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// A program that reads its configuration from elsewhere fills the struct itself.
func ExampleNewFrom() {
	cfg := client.DefaultConfig()
	cfg.Seeds = []string{"broker:9092"}
	cfg.ClientID = "billing"
	cfg.RequestTimeout = 10 * time.Second
	c, err := client.NewFrom(cfg) // no I/O yet
	fmt.Println(err, c.Config().ClientID, c.Config().RequestTimeout)
	fmt.Println(c.Close(context.Background()))
	// Output:
	// <nil> billing 10s
	// <nil>
}

// Lint says what is allowed and probably not meant.
func ExampleConfig_Lint() {
	cfg := client.DefaultConfig()
	for _, opt := range []client.Option{client.Seeds("a:9092", "b:9092"), client.MaxIdle(time.Hour), client.SASL(sasl.PlainUser("alice", sasl.NewSecret("wonder")))} {
		opt(&cfg)
	}
	for _, line := range cfg.Lint() {
		fmt.Println(line)
	}
	// Output:
	// security.protocol=SASL_PLAINTEXT with sasl.mechanism=PLAIN sends the password unencrypted; use SASL_SSL outside of a trusted network
	// connections.max.idle.ms is 1h0m0s, but brokers close idle connections after 10 minutes by default
}

// The configuration prints by Kafka's names, without its secrets.
func ExampleConfig_String() {
	cfg := client.DefaultConfig()
	client.Seeds("a:9092", "b:9092")(&cfg)
	for line := range strings.Lines(cfg.String()) {
		if strings.HasPrefix(line, "bootstrap.servers") || strings.HasPrefix(line, "retry") {
			fmt.Print(line)
		}
	}
	// Output:
	// bootstrap.servers=a:9092,b:9092
	// retry.backoff.ms=100
	// retry.backoff.max.ms=1000
}

// mirror is the configuration of a program of one's own, with keys beside the client's.
type mirror struct {
	source  string
	topics  []string
	every   time.Duration
	workers int
	dry     bool
}

// Keys of one's own take part in reading Java properties: what no table knows is an error that names the nearest.
func ExampleLoadProperties() {
	own := client.PropertyTable[mirror]{
		{Key: "mirror.source", Apply: client.SetString(func(m *mirror) *string { return &m.source })},
		{Key: "mirror.topics", Apply: client.SetList(func(m *mirror) *[]string { return &m.topics })},
		{Key: "mirror.interval.ms", Apply: client.SetMillis(func(m *mirror) *time.Duration { return &m.every })},
		{Key: "mirror.workers", Apply: client.SetInt(func(m *mirror) *int { return &m.workers })},
		{Key: "mirror.dry.run", Apply: client.SetBool(func(m *mirror) *bool { return &m.dry })},
		{Key: "mirror.codec", Default: "none", Refuse: "batches are passed on as they are"},
	}
	m, cfg := mirror{}, client.DefaultConfig()
	fmt.Println(client.LoadProperties(map[string]string{
		"bootstrap.servers": "broker:9092", "mirror.source": "east", "mirror.topics": "orders, payments",
		"mirror.interval.ms": "1500", "mirror.workers": "4", "mirror.dry.run": "true", "mirror.codec": "none",
	}, client.ClientProperties().Bind(&cfg), own.Bind(&m)))
	fmt.Println(m.source, m.topics, m.every, m.workers, m.dry, cfg.Seeds)
	err := client.LoadProperties(map[string]string{"mirror.worker": "4", "mirror.codec": "zstd"}, own.Bind(&m))
	fmt.Println(err)
	var field *client.FieldError
	fmt.Println(errors.As(err, &field), field.Key)
	// Output:
	// <nil>
	// east [orders payments] 1.5s 4 true [broker:9092]
	// mirror.codec=zstd: batches are passed on as they are
	// mirror.worker: is not a configuration key of this client; did you mean mirror.workers?
	// true mirror.codec
}

// The table says what each of Kafka's keys does here, and where a default is ours.
func ExampleClientProperties() {
	p, ok := client.ClientProperties().Lookup("ssl.engine.factory.class")
	fmt.Println(ok, p.Refuse)
	p, _ = client.ClientProperties().Lookup("metadata.max.age.ms")
	fmt.Println(p.Default, p.Differs == "")
	// Output:
	// true names a Java class; pass a *tls.Config to client.TLS instead
	// 300000 true
}

// The ssl.* keys become a *tls.Config; key stores in Java's own format have to be converted.
func ExampleSSLConfig() {
	ssl := client.SSLConfig{Protocols: []string{"TLSv1.3"}}
	conf, err := ssl.Build()
	fmt.Println(conf.MinVersion == conf.MaxVersion, err)
	ssl = client.SSLConfig{TruststoreType: "JKS", TruststoreLocation: "trust.jks"}
	_, err = ssl.Build()
	fmt.Println(strings.Split(err.Error(), ";")[0])
	// Output:
	// true <nil>
	// JKS stores are not read
}

// A dial function of one's own: a proxy, a tunnel, a socket option, or here a count.
func ExampleDialer() {
	peer := wiretest.New(nil)
	defer peer.Close()
	dialled := 0
	c, _ := client.New(client.Seeds("broker-1:9092"), client.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled++
		return peer.DialContext(ctx, network, addr)
	}))
	ctx := context.Background()
	c.AwaitTopics(ctx)
	c.Close(ctx)
	fmt.Println(dialled)
	// Output: 1
}
