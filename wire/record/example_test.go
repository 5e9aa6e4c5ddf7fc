package record_test

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// A producer appends records until the batch is full, seals it and sends the bytes.
func ExampleBuilder() {
	c, _ := compress.NewCompressor(compress.Zstd, compress.DefaultLevel)
	b := record.NewBuilder(make([]byte, 0, 16<<10))
	for i := range 3 {
		value := fmt.Appendf(nil, "order %d", i)
		if !b.TryAppend(16<<10, 1_700_000_000_000+int64(i), []byte("customer-7"), value, nil) {
			break // full: seal, and put the record into the next batch
		}
	}
	batch := b.SealCompressed(nil, record.NoProducer(), c)
	h, err := record.ParseHeader(batch)
	fmt.Println(h.Count, "records,", h.Codec(), err)
	// Output: 3 records, zstd <nil>
}

// A consumer cuts what it fetched into batches and reads each. The last one may have been cut off by the broker.
func ExampleOpen() {
	b := record.NewBuilder(nil)
	b.Append(1_700_000_000_000, []byte("k"), []byte("hello"), []record.Header{{Key: "lang", Value: []byte("en")}})
	b.Append(1_700_000_000_001, nil, nil, nil)
	fetched := b.Seal(record.NoProducer())
	record.PatchBase(fetched, 41, 3)
	fetched = append(fetched, fetched[:20]...)

	d := compress.NewDecompressor()
	for rest := fetched; ; {
		batch, more, err := record.Next(rest)
		if errors.Is(err, record.ErrPartial) {
			break
		}
		rest = more
		it, err := record.Open(batch, record.ReadOptions{Decompressor: d})
		if err != nil {
			fmt.Println(err)
			return
		}
		for r := range it.All() {
			lang, _ := r.Headers.Last("lang")
			fmt.Printf("%d %q %q null=%v lang=%q\n", r.Offset, r.Key, r.Value, r.Value == nil, lang)
		}
		fmt.Println(it.Err())
	}
	// Output:
	// 41 "k" "hello" null=false lang="en"
	// 42 "" "" null=true lang=""
	// <nil>
}

// A broker checks a produced batch and stamps it; the records stay as they came.
func ExampleCheckRecords() {
	b := record.NewBuilder(nil)
	b.Append(1_700_000_000_000, []byte("k"), []byte("v"), nil)
	b.Append(1_700_000_000_001, nil, []byte("no key"), nil)
	batch := b.Seal(record.NoProducer())

	h, err := record.ParseHeader(batch)
	fmt.Println(err, h.CheckProduced())
	found, err := record.CheckRecords(batch, record.ReadOptions{}, record.Checks{Consecutive: true, Keys: true})
	fmt.Println(found.Count, found.MaxTimestamp, err)
	for _, e := range found.Errors {
		fmt.Println(e)
	}
	record.PatchBase(batch, 500, 1)
	fmt.Println(record.Validate(batch))
	// Output:
	// <nil> <nil>
	// 2 1700000000001 <nil>
	// batch at offset 0, record 1: record: invalid record: compacted topic cannot accept message without key
	// <nil>
}

// Batches that wait while the producer gets another id or epoch are stamped anew without encoding them again.
func ExampleReseal() {
	b := record.NewBuilder(nil)
	b.Append(1, nil, []byte("v"), nil)
	batch := b.Seal(record.Stamp{ProducerID: 7, ProducerEpoch: 0, BaseSequence: 10})
	record.Reseal(batch, record.Stamp{ProducerID: 7, ProducerEpoch: 1, BaseSequence: 0})
	h, _ := record.ParseHeader(batch)
	fmt.Println(h.ProducerEpoch, h.BaseSequence, record.Validate(batch))
	// Output: 1 0 <nil>
}

// The leader of a partition ends a transaction with a marker.
func ExampleAppendEndTxn() {
	batch := record.AppendEndTxn(nil, record.EndTxn{Commit: true, CoordinatorEpoch: 5}, 11, 2, 1_700_000_000_000, 4000, 3)
	h, records, err := record.ReadControls(batch)
	fmt.Println(len(batch), h.Control(), records[0].Type, err)
	// Output: 78 true COMMIT <nil>
}

// Peek tells from the first 17 bytes of a batch how much has to be read for all of it.
func ExamplePeek() {
	b := record.NewBuilder(nil)
	b.Append(1, nil, []byte("v"), nil)
	size, magic, err := record.Peek(b.Seal(record.NoProducer())[:record.PeekSize])
	fmt.Println(size, magic, err)
	// Output: 69 2 <nil>
}
