package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// small is a controller and the image of a cluster with one active broker.
func small() (*controller.Controller, *image.Image) {
	layers, err := config.NewLayers(nil)
	if err != nil {
		panic(err)
	}
	n := byte(0)
	c := controller.New(controller.Options{NodeID: 1, Config: layers, Rand: func(int) int { return 0 },
		NewUUID: func() wire.UUID { n++; return wire.UUID{14: 1, 15: n} }})
	d := image.NewDelta(image.Empty())
	broker := &image.Broker{ID: 1, Directories: []wire.UUID{{15: 1}}}
	for _, r := range append(c.Bootstrap(image.DefaultLevels()), broker.Record(image.MetadataVersionLatest)) {
		if err := d.Apply(0, 1, r); err != nil {
			panic(err)
		}
	}
	return c, d.Image()
}

func create(name string, partitions int32) *message.CreateTopicsRequest {
	return &message.CreateTopicsRequest{Topics: []message.CreatableTopic{{Name: name, NumPartitions: partitions, ReplicationFactor: 1}}}
}

func ExampleController_Handle() {
	c, img := small()
	result, err := c.Handle(time.Time{}, controller.View{Image: img}, create("orders", 2))
	if err != nil {
		panic(err)
	}
	for _, r := range result.Records {
		fmt.Printf("%T\n", r.Record)
	}
	fmt.Println(img.Topic("orders") == nil)
	// Output:
	// *logrecord.TopicRecord
	// *logrecord.PartitionRecord
	// *logrecord.PartitionRecord
	// true
}

func BenchmarkProposeThousandPartitions(b *testing.B) {
	c, img := small()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Handle(time.Time{}, controller.View{Image: img}, create("orders", 1000)); err != nil {
			b.Fatal(err)
		}
	}
}
