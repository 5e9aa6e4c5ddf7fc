package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
)

const (
	stages     = 3
	partitions = 4
)

// cluster is the brokers, and the topics of this run: the input, and the output of each stage.
type cluster struct {
	seeds  []string
	broker *fakebroker.Cluster // nil on a real cluster
	cl     *client.Client
	run    string
	topics [stages + 1]string
	made   []string // the topics that there are, to be removed again
}

// hello is how long a cluster may take to answer for the first time.
const hello = 4 * time.Second

// start finds or starts brokers and makes the topics.
func start(ctx context.Context, bootstrap string, unsafe bool) (k *cluster, err error) {
	k = &cluster{run: fmt.Sprintf("eos-%d", time.Now().UnixNano())}
	if bootstrap != "" {
		k.seeds = strings.Split(bootstrap, ",")
	} else {
		k.broker, err = fakebroker.New(fakebroker.Listen("127.0.0.1:0"), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
		if err != nil {
			return nil, err
		}
		k.seeds = k.broker.Addrs()
	}
	if k.cl, err = client.New(client.Seeds(k.seeds...), client.ClientID("eos")); err == nil {
		err = k.make(ctx, unsafe)
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// make makes the topics, once a broker has answered.
func (k *cluster) make(ctx context.Context, unsafe bool) error {
	if k.broker == nil {
		soon, cancel := context.WithTimeoutCause(ctx, hello, fmt.Errorf("at %s for %s", strings.Join(k.seeds, ", "), hello))
		defer cancel()
		if h := k.cl.Health(soon); h.Err != nil {
			return h.Err
		}
		if !unsafe {
			if err := k.suits(ctx); err != nil {
				return err
			}
		}
	}
	adm := admin.New(k.cl)
	for i := range k.topics {
		k.topics[i] = fmt.Sprintf("%s-%d", k.run, i)
		topic := admin.NewTopic{Name: k.topics[i], Partitions: partitions}
		_, err := adm.CreateTopics(ctx, topic)
		if errors.Is(err, client.ErrUnsupportedVersion) { // brokers before 2.4 want to be told how many replicas
			topic.Replicas = min(3, len(k.cl.Topology().Brokers))
			_, err = adm.CreateTopics(ctx, topic)
		}
		if err != nil {
			return err
		}
		k.made = append(k.made, k.topics[i])
	}
	return nil
}

// suits asks each broker whether it checks which member of a group commits offsets in a transaction (KIP-447).
func (k *cluster) suits(ctx context.Context) error {
	adm := admin.New(k.cl)
	all, err := adm.DescribeCluster(ctx)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, hello)
	defer cancel()
	for _, b := range all.Brokers {
		if b.Fenced {
			continue
		}
		rows, _ := adm.APIVersions(soon, b.ID) // a broker that is down just now is not what this is about
		for _, r := range rows {
			if r.Key == wire.KeyTxnOffsetCommit && r.Max < 3 {
				return fmt.Errorf("exactly once takes brokers from 2.5 on (KIP-447), %s is older; -unsafe goes with those from 2.3 on", k.cl.BrokerName(b.ID))
			}
		}
	}
	return nil
}

// crash ends the broker as kill -9 does and starts it on what it had written.
func (k *cluster) crash(ctx context.Context) (string, error) {
	begin := time.Now()
	if err := k.broker.Crash(ctx); err != nil {
		return "", err
	}
	err := k.broker.Restart(ctx)
	return fmt.Sprintf("crashed the broker, back after %d ms", time.Since(begin).Milliseconds()), err
}

// group is the consumer group of a stage.
func (k *cluster) group(stage int) string { return fmt.Sprintf("%s-stage-%d", k.run, stage) }

// close removes what this run has made.
func (k *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the verdict is out; nothing hangs on it
	defer cancel()
	if k.cl != nil {
		if k.broker == nil && len(k.made) > 0 {
			adm := admin.New(k.cl)
			adm.DeleteTopics(ctx, k.made...) // as far as it goes
			for stage := 1; stage <= stages; stage++ {
				adm.DeleteGroups(ctx, k.group(stage))
			}
		}
		k.cl.Close(ctx)
	}
	if k.broker != nil {
		k.broker.Close(ctx)
	}
}
