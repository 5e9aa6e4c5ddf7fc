package producer_test

import (
	"fmt"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
)

// Encoders write the bytes that Kafka's serializers write, behind what is in dst.
func ExampleEncoder() {
	show := func(b []byte, null bool, err error) { fmt.Println(b, null, err) }
	show(producer.Int16([]byte{9}, 1))
	show(producer.Int32(nil, 1))
	show(producer.Int64(nil, -1))
	show(producer.Float32(nil, 1))
	show(producer.Float64(nil, 1))
	show(producer.Bool(nil, true))
	show(producer.String(nil, "a"))
	show(producer.Bytes(nil, nil)) // nil is null
	show(producer.Null(nil, "anything"))
	id, _, _ := producer.UUID(nil, wire.UUID{15: 1})
	fmt.Println(string(id))
	// Output:
	// [9 0 1] false <nil>
	// [0 0 0 1] false <nil>
	// [255 255 255 255 255 255 255 255] false <nil>
	// [63 128 0 0] false <nil>
	// [63 240 0 0 0 0 0 0] false <nil>
	// [1] false <nil>
	// [97] false <nil>
	// [] true <nil>
	// [] true <nil>
	// 00000000-0000-0000-0000-000000000001
}

// A Format is an encoding by name, for programs that are told which one by their configuration.
func ExampleFormat() {
	encode, err := producer.FormatInt32.Encoder()
	fmt.Println(err)
	fmt.Println(encode(nil, int32(7)))
	fmt.Println(encode(nil, nil))
	_, err = producer.Format("avro").Encoder()
	fmt.Println(err != nil, len(producer.Formats()))
	// Output:
	// <nil>
	// [0 0 0 7] false <nil>
	// [] true <nil>
	// true 11
}
