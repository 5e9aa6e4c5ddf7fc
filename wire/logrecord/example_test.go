package logrecord_test

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

func ExampleAppendFramed() {
	topic := logrecord.NewTopicRecord()
	topic.Name, topic.TopicId = "orders", wire.UUID{15: 7}
	value, err := logrecord.AppendFramed(nil, topic, 0)
	fmt.Printf("%x %v\n", value[:3], err)

	rec, version, err := logrecord.ReadFramed(value)
	fmt.Println(rec.(*logrecord.TopicRecord).Name, version, err)
	// Output:
	// 010200 <nil>
	// orders 0 <nil>
}

func ExampleReadKey() {
	key := logrecord.NewOffsetCommitKey()
	key.Group, key.Topic, key.Partition = "billing", "orders", 3
	b, err := logrecord.AppendKey(nil, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	read, err := logrecord.ReadKey(logrecord.GroupLog, b)
	fmt.Println(read.APIKey(), read.(*logrecord.OffsetCommitKey).Group, err)
	// Output: 1 billing <nil>
}
