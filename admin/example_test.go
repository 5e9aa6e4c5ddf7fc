package admin_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

var ctx = context.Background()

// cluster starts a broker in this process and an Admin on it, as the examples below need them.
func cluster(opts ...fakebroker.Option) (adm *admin.Admin, stop func()) {
	k, err := fakebroker.New(opts...)
	if err != nil {
		panic(err)
	}
	adm, err = admin.Dial(k.Addrs(), client.Dialer(k.DialContext))
	if err != nil {
		panic(err)
	}
	return adm, func() { adm.Close(ctx); k.Close(ctx) }
}

// send writes records to partition 0 of a topic.
func send(adm *admin.Admin, topic string, values ...string) {
	p, err := producer.New(adm.Client())
	if err != nil {
		panic(err)
	}
	defer p.Close(ctx)
	for i, v := range values {
		p.Send(ctx, producer.Record{Topic: topic, Value: []byte(v), Timestamp: time.Unix(1_700_000_000+int64(i), 0)}.To(0))
	}
}

// An Admin shares its client with producers and consumers.
func ExampleNew() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 3))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(ctx)
	cl, err := client.New(client.Cluster(k)) // client.Seeds("broker1:9092", "broker2:9092") for others
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cl.Close(ctx)

	topics, err := admin.New(cl).ListTopics(ctx)
	fmt.Println(len(topics), topics[0].Name, err)
	// Output: 1 orders <nil>
}

// Dial is New with a client of its own. Options are the client's; client.Properties takes Java property names.
func ExampleDial() {
	k, err := fakebroker.New(fakebroker.Listen("127.0.0.1:0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(ctx)

	adm, err := admin.Dial(k.Addrs(), client.ClientID("cleaner"), client.RequestTimeout(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer adm.Close(ctx)
	cluster, err := adm.DescribeCluster(ctx)
	fmt.Println(len(cluster.Brokers), err)
	// Output: 1 <nil>
}

// Rows tell what became of each topic. The error of the call is that of the rows that failed.
func ExampleAdmin_CreateTopics() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	rows, err := adm.CreateTopics(ctx,
		admin.NewTopic{Name: "orders", Partitions: 6},
		admin.NewTopic{Name: "users", Partitions: 3, Configs: map[string]string{"cleanup.policy": "compact"}})
	fmt.Println(err)
	fmt.Println("already there:", errors.Is(err, errcode.TopicAlreadyExists))
	for _, r := range rows {
		if r.Err == nil {
			fmt.Println(r.Name, r.Partitions, r.Configs["cleanup.policy"])
		}
	}
	// Output:
	// create topic orders: TOPIC_ALREADY_EXISTS: Topic 'orders' already exists.
	// already there: true
	// users 3 compact
}

func ExampleAdmin_ValidateTopics() {
	adm, stop := cluster()
	defer stop()

	_, err := adm.ValidateTopics(ctx, admin.NewTopic{Name: "orders", Configs: map[string]string{"retention.ms": "a week"}})
	fmt.Println(errors.Is(err, errcode.InvalidConfig))
	_, err = adm.ValidateTopics(ctx, admin.NewTopic{Name: "orders", Configs: map[string]string{"retention.ms": "604800000"}})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

func ExampleAdmin_DeleteTopics() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	rows, err := adm.DeleteTopics(ctx, "orders", "ordrs")
	for _, r := range rows {
		fmt.Println(r.Name, r.Err == nil)
	}
	fmt.Println(errors.Is(err, errcode.UnknownTopicOrPartition))
	// Output:
	// orders true
	// ordrs false
	// true
}

func ExampleAdmin_ListTopics() {
	adm, stop := cluster(fakebroker.Topic("users", 3), fakebroker.Topic("orders", 6))
	defer stop()

	topics, err := adm.ListTopics(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, t := range topics {
		fmt.Println(t.Name, len(t.Partitions), t.Replicas())
	}
	// Output:
	// orders 6 1
	// users 3 1
}

func ExampleAdmin_DescribeTopics() {
	adm, stop := cluster(fakebroker.Topic("orders", 2))
	defer stop()

	topics, err := adm.DescribeTopics(ctx, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range topics[0].Partitions {
		fmt.Println(p.ID, "leader", p.Leader, "replicas", p.Replicas, "in sync", p.ISR, p.UnderReplicated())
	}
	// Output:
	// 0 leader 1 replicas [1] in sync [1] false
	// 1 leader 1 replicas [1] in sync [1] false
}

// AwaitTopic closes the gap between the controller, which has created a topic, and the brokers, which are to hear of it.
func ExampleAdmin_AwaitTopic() {
	adm, stop := cluster()
	defer stop()

	time.AfterFunc(20*time.Millisecond, func() { adm.CreateTopics(ctx, admin.NewTopic{Name: "orders"}) })
	fmt.Println(adm.AwaitTopic(ctx, "orders"))
	// Output: <nil>
}

func ExampleAdmin_CreatePartitions() {
	adm, stop := cluster(fakebroker.Topic("orders", 2))
	defer stop()

	_, err := adm.CreatePartitions(ctx, admin.MorePartitions{Topic: "orders", Total: 6})
	topics, _ := adm.DescribeTopics(ctx, "orders")
	fmt.Println(len(topics[0].Partitions), err)
	// Output: 6 <nil>
}

func ExampleAdmin_ValidatePartitions() {
	adm, stop := cluster(fakebroker.Topic("orders", 2))
	defer stop()

	_, err := adm.ValidatePartitions(ctx, admin.MorePartitions{Topic: "orders", Total: 1})
	fmt.Println(err)
	// Output: create partitions of orders: INVALID_PARTITIONS: The topic orders currently has 2 partition(s); 1 would not be an increase.
}

func ExampleAdmin_DescribeConfigs() {
	adm, stop := cluster(fakebroker.TopicWith(fakebroker.TopicSpec{Name: "orders", Partitions: 1, Configs: map[string]string{"retention.ms": "3600000"}}))
	defer stop()

	rows, err := adm.DescribeConfigs(ctx, admin.TopicConfigs("orders"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range rows[0].Entries {
		if e.Source == admin.TopicConfig {
			fmt.Println(e, e.Source, e.Type)
		}
	}
	policy, _ := rows[0].Get("cleanup.policy")
	fmt.Println(policy)
	// Output:
	// retention.ms=3600000 DYNAMIC_TOPIC_CONFIG LONG
	// delete
}

// Only the configurations named change, and those of one resource all or none.
func ExampleAdmin_AlterConfigs() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	orders := admin.TopicConfigs("orders")
	_, err := adm.AlterConfigs(ctx,
		admin.ConfigChange{Resource: orders, Name: "retention.ms", Value: "3600000"},
		admin.ConfigChange{Resource: orders, Op: admin.AppendConfig, Name: "cleanup.policy", Value: "compact"})
	rows, _ := adm.DescribeConfigs(ctx, orders)
	policy, _ := rows[0].Get("cleanup.policy")
	fmt.Println(policy, err)
	// Output: delete,compact <nil>
}

func ExampleAdmin_ValidateConfigs() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	_, err := adm.ValidateConfigs(ctx, admin.ConfigChange{Resource: admin.TopicConfigs("orders"), Name: "min.insync.replicas", Value: "none"})
	fmt.Println(errors.Is(err, errcode.InvalidConfig))
	// Output: true
}

func ExampleAdmin_ListConfigResources() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	resources, err := adm.ListConfigResources(ctx, admin.TopicResource, admin.BrokerResource)
	fmt.Println(resources, err)
	// Output: [broker "1" topic "orders"] <nil>
}

func ExampleAdmin_ListOffsets() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	send(adm, "orders", "a", "b", "c")

	p := admin.TopicPartition{Topic: "orders", Partition: 0}
	for _, spec := range []admin.OffsetSpec{admin.Earliest, admin.Latest, admin.AtTime(time.Unix(1_700_000_001, 0))} {
		rows, err := adm.ListOffsets(ctx, spec, p)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rows[0], rows[0].Offset)
	}
	// Output:
	// orders-0@0 0
	// orders-0@3 3
	// orders-0@1 1
}

func ExampleAdmin_DeleteRecords() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	send(adm, "orders", "a", "b", "c")

	p := admin.TopicPartition{Topic: "orders", Partition: 0}
	rows, err := adm.DeleteRecords(ctx, map[admin.TopicPartition]int64{p: 2})
	fmt.Println(rows[0], err)
	rows, err = adm.DeleteRecords(ctx, map[admin.TopicPartition]int64{p: admin.AllRecords})
	fmt.Println(rows[0].LowWatermark, err)
	// Output:
	// orders-0 from 2 <nil>
	// 3 <nil>
}

func ExampleAdmin_DescribeCluster() {
	adm, stop := cluster(fakebroker.ClusterID("MkU3OEVBNTcwNTJENDM2Qg"))
	defer stop()

	c, err := adm.DescribeCluster(ctx)
	fmt.Println(c.ID, c.Controller, len(c.Brokers), err)
	// Output: MkU3OEVBNTcwNTJENDM2Qg 1 1 <nil>
}

func ExampleAdmin_APIVersions() {
	adm, stop := cluster()
	defer stop()

	rows, err := adm.APIVersions(ctx, 1)
	if err != nil {
		fmt.Println(err)
	}
	for _, r := range rows {
		if r.Key == wire.KeyCreateTopics {
			fmt.Println(r.Key, r.Min, r.Max)
		}
	}
	// Output: CreateTopics 2 7
}

// The errors of rows can be told apart from those of whole requests.
func ExampleError() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	_, err := adm.CreateTopics(ctx, admin.NewTopic{Name: "orders"})
	var row *admin.Error
	if errors.As(err, &row) {
		fmt.Println(row.Op, row.What, row.Code.Name(), row.Message)
	}
	stop()
	_, err = adm.CreateTopics(ctx, admin.NewTopic{Name: "orders"})
	fmt.Println(errors.Is(err, client.ErrClosed))
	// Output:
	// create topic orders TOPIC_ALREADY_EXISTS Topic 'orders' already exists.
	// true
}
