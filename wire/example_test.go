package wire_test

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
)

func ExampleReader() {
	b := wire.AppendInt32(nil, 7)
	b = wire.AppendCompactString(b, "orders")
	r := wire.NewReader(b)
	fmt.Println(r.Int32(), r.CompactString(), r.Err())
	fmt.Println(r.Int64(), r.Err())
	fmt.Println(errors.Is(r.Err(), wire.ErrTruncated))
	// Output:
	// 7 orders <nil>
	// 0 wire: bytes end early at byte 11 of 11: 8 bytes are needed, 0 are left
	// true
}

func ExampleVersions() {
	min, max, _ := wire.Versions(wire.KeyFetch)
	request, response := wire.HeaderVersions(wire.KeyFetch, max)
	fmt.Println(wire.KeyFetch, min, max, wire.Flexible(wire.KeyFetch, min), request, response)
	// Output: Fetch 4 18 false 2 1
}

// A broker advertises Produce from a version that it does not serve, and leaves out what is not stable.
func ExampleBrokerVersions() {
	fmt.Println(wire.BrokerVersions(wire.KeyProduce))
	fmt.Println(wire.BrokerVersions(wire.KeyInitProducerId))
	fmt.Println(wire.BrokerVersions(wire.KeyVote))
	// Output:
	// 0 13 true
	// 0 5 true
	// 0 -1 false
}

func ExampleParseUUID() {
	id, err := wire.ParseUUID("AAAAAAAAAAAAAAAAAAAAAQ")
	fmt.Println(id == wire.MetadataTopicID, err)
	_, err = wire.ParseUUID("too short")
	fmt.Println(err)
	// Output:
	// true <nil>
	// wire: uuid "too short": illegal base64 data at input byte 3
}

// Each tagged field of a struct is read with the reader ending where the field does.
func ExampleTagReader() {
	b := []byte{2, 0, 4, 0, 0, 0, 42, 9, 2, 'h', 'i'}
	r := wire.NewReader(b)
	var unknown wire.Tags
	for tags := r.Tags(); tags.Next(); {
		switch tags.ID {
		case 0:
			fmt.Println("known:", r.Int32())
		default:
			unknown = tags.Keep(unknown)
		}
	}
	fmt.Printf("unknown: %d %s, %v\n", unknown[0].ID, unknown[0].Data, r.Err())
	// Output:
	// known: 42
	// unknown: 9 hi, <nil>
}
