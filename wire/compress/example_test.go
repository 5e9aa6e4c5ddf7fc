package compress_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/compress"
)

func Example() {
	codec, err := compress.Parse("lz4")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := compress.NewCompressor(codec, compress.DefaultLevel)
	if err != nil {
		fmt.Println(err)
		return
	}
	src := bytes.Repeat([]byte("the same line again\n"), 1000)
	packed := c.Append(nil, src)
	fmt.Println(len(packed) < len(src)/50)

	d := compress.NewDecompressor()
	back, err := d.Append(nil, codec, packed, compress.ClientLimit)
	fmt.Println(bytes.Equal(back, src), err)

	_, err = d.Append(nil, codec, packed, 1000)
	fmt.Println(errors.Is(err, compress.ErrTooLarge))
	// Output:
	// true
	// true <nil>
	// true
}

func ExampleNewCompressor() {
	_, err := compress.NewCompressor(compress.Gzip, 11)
	fmt.Println(err)
	// Output: compression.gzip.level 11 is outside -1..9
}
