package wirejson_test

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

func ExampleAppend() {
	req := message.NewMetadataRequest()
	wire.Add(&req.Topics).Name = new("orders")
	old, err := wirejson.Append(nil, req, 1)
	fmt.Printf("%s %v\n", old, err)
	recent, err := wirejson.Append(nil, req, 13)
	fmt.Printf("%s %v\n", recent, err)
	// Output:
	// {"topics":[{"name":"orders"}]} <nil>
	// {"topics":[{"topicId":"AAAAAAAAAAAAAAAAAAAAAA","name":"orders"}],"allowAutoTopicCreation":true,"includeTopicAuthorizedOperations":false} <nil>
}

func ExampleDecode() {
	req := new(message.MetadataRequest)
	err := wirejson.Decode([]byte(`{"topics":null}`), req)
	fmt.Println(req.Topics == nil, req.AllowAutoTopicCreation, err)
	err = wirejson.Decode([]byte(`{"topics":[{"name":5}]}`), req)
	fmt.Println(err)
	// Output:
	// true true <nil>
	// topics: 0: name: wirejson: a JSON number does not fit a string
}
