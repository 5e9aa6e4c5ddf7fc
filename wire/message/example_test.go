package message_test

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A request is filled, written behind its header, and read as a broker does.
func ExampleRequest() {
	req := message.NewCreateTopicsRequest()
	topic := wire.Add(&req.Topics)
	topic.Name, topic.NumPartitions, topic.ReplicationFactor = "orders", 6, -1

	const version = 7
	frame := wire.AppendRequestHeader(nil, req.Key(), version, 1, new("example"))
	frame, err := req.AppendTo(frame, version)
	if err != nil {
		fmt.Println(err)
		return
	}

	r := wire.NewReader(frame)
	header, err := wire.ReadRequestHeader(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := message.NewRequest(header.Key)
	if err := body.ReadFrom(r, header.Version); err != nil {
		fmt.Println(err)
		return
	}
	read := body.(*message.CreateTopicsRequest)
	fmt.Println(header.Key, header.Version, *header.ClientID, read.Topics[0].Name, read.TimeoutMs)
	// Output: CreateTopics 7 example orders 60000
}

// A field that the version does not have is an error when it is set, unless its definition calls it ignorable.
func ExampleResponse() {
	resp := message.NewResponse(wire.KeyFindCoordinator).(*message.FindCoordinatorResponse)
	wire.Add(&resp.Coordinators).Key = "group"
	_, err := resp.AppendTo(nil, 3)
	fmt.Println(err)
	// Output: wire: FindCoordinatorResponse version 3: FindCoordinatorResponse.Coordinators: unsupported version: the field is set and this version does not have it
}

func ExampleNew() {
	m := message.New("FetchRequest").(*message.FetchRequest)
	fmt.Println(m.MaxBytes, m.SessionEpoch)
	// Output: 2147483647 -1
}
