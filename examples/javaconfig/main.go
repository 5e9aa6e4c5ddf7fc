// Command javaconfig writes and reads with the configuration files of a Java service, serializers and partitioner included:
// go run ./examples/javaconfig TOPIC producer.properties consumer.properties
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: javaconfig TOPIC producer.properties consumer.properties")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

// run sends three keys with three numbers, and reads as many records back. Options add to what the files say.
func run(ctx context.Context, topic, producerFile, consumerFile string, opts ...client.Option) error {
	if err := send(ctx, topic, producerFile, opts); err != nil {
		return err
	}
	properties, err := load(consumerFile)
	if err != nil {
		return err
	}
	clientConfig, consumerConfig, err := consumer.FromProperties(properties)
	if err != nil {
		return err // every key that is unknown, refused or wrong, with what to write instead
	}
	for _, opt := range opts {
		opt(&clientConfig)
	}
	cl, err := client.NewFrom(clientConfig)
	if err != nil {
		return err
	}
	defer cl.Close(ctx)
	consumer.Assign(topic, 0)(&consumerConfig)
	c, err := consumer.NewFromConfig(cl, consumerConfig)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	typed, err := consumer.Any(c) // decodes as key.deserializer and value.deserializer say
	if err != nil {
		return err
	}
	for rec, err := range typed.Records(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("%d: %v = %v (%T)\n", rec.Raw.Offset, rec.Key, rec.Value, rec.Value)
		if rec.Raw.Offset == 2 {
			break
		}
	}
	return nil
}

func send(ctx context.Context, topic, file string, opts []client.Option) error {
	properties, err := load(file)
	if err != nil {
		return err
	}
	clientConfig, producerConfig, err := producer.FromProperties(properties)
	if err != nil {
		return err
	}
	for _, opt := range opts {
		opt(&clientConfig)
	}
	cl, err := client.NewFrom(clientConfig)
	if err != nil {
		return err
	}
	defer cl.Close(ctx)
	p, err := producer.NewFromConfig(cl, producerConfig)
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	typed, err := producer.Any(p, topic) // encodes as key.serializer and value.serializer say
	if err != nil {
		return err
	}
	for i, key := range []string{"ada", "bob", "cyd"} {
		if _, err := typed.Send(ctx, key, int64(100*i)); err != nil {
			return err
		}
	}
	return nil
}

func load(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return client.ReadProperties(f)
}
