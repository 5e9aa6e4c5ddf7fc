package record

// Checks is what a broker demands of every record of a batch that a client produced, beyond the format.
type Checks struct {
	// Keys: no record may be without a key (cleanup.policy contains compact).
	Keys bool
	// Consecutive: offset deltas must be 0, 1, 2 ... as a producer writes them.
	Consecutive bool
	// MinTimestamp and MaxTimestamp bound the timestamps (message.timestamp.before.max.ms, .after.max.ms), in ms.
	// They are not looked at if both are 0, nor for records without a timestamp.
	MinTimestamp, MaxTimestamp int64
}

// maxRecordErrors bounds Found.Errors: a batch can hold a hundred thousand bad records, and nobody reads more.
const maxRecordErrors = 100

// Found is what CheckRecords saw.
type Found struct {
	Count           int32
	Bytes           int   // size of the records uncompressed
	MaxTimestamp    int64 // ms, NoTimestamp without records
	MaxTimestampAt  int64 // offset of the first record that has it
	FirstOffset     int64
	LastOffset      int64
	LastOffsetDelta int32
	Consecutive     bool // offset deltas are 0, 1, 2 ... (gaps are no error unless Checks says so)
	// Errors are the records that failed Checks (the first hundred): ErrInvalid or ErrTimestamp. Kafka answers a batch
	// with such records as a whole with the error and lists them in record_errors.
	Errors []*RecordError
}

// CheckRecords walks over all records of a magic 2 batch as a broker does before it appends: sizes, counts, varints and
// headers as Open and Next check them (the error), and c (Found.Errors). Keys and values are skipped, not copied; a
// compressed batch goes through a scratch buffer of o.Decompressor, so o.Buffer is not used. It does not allocate
// otherwise.
func CheckRecords(batch []byte, o ReadOptions, c Checks) (Found, error) {
	f := Found{MaxTimestamp: NoTimestamp, MaxTimestampAt: -1, FirstOffset: -1, LastOffset: -1}
	if len(batch) > offMagic && batch[offMagic] < 2 {
		return f, unsupportedf("magic %d, a broker takes 2 only", batch[offMagic])
	}
	if o.Decompressor != nil {
		scratch := o.Decompressor.Borrow()
		defer o.Decompressor.Return(scratch)
		o.Buffer = scratch.B
		it, err := Open(batch, o)
		if it.plain != nil {
			scratch.B = it.plain // it may have grown
		}
		err = f.walk(&it, err, c)
		return f, err
	}
	it, err := Open(batch, o)
	err = f.walk(&it, err, c)
	return f, err
}

func (f *Found) walk(it *Iterator, err error, c Checks) error {
	if err != nil {
		return err
	}
	f.Bytes = len(it.data)
	times := c.MinTimestamp != 0 || c.MaxTimestamp != 0
	f.Consecutive = true
	var r Record
	for it.Into(&r) {
		if r.Offset != it.header.BaseOffset+int64(f.Count) {
			f.Consecutive = false
		}
		if f.Count == 0 {
			f.FirstOffset = r.Offset
		}
		if r.Timestamp > f.MaxTimestamp {
			f.MaxTimestamp, f.MaxTimestampAt = r.Timestamp, r.Offset
		}
		switch {
		case c.Consecutive && r.Offset != it.header.BaseOffset+int64(f.Count):
			f.add(it, invalidf("offset delta %d is not consecutive", r.Offset-it.header.BaseOffset))
		case c.Keys && r.Key == nil:
			f.add(it, invalidf("compacted topic cannot accept message without key"))
		case times && r.Timestamp != NoTimestamp && (r.Timestamp < c.MinTimestamp || r.Timestamp > c.MaxTimestamp):
			f.add(it, timestampError(r.Timestamp, c))
		}
		f.LastOffset = r.Offset
		f.Count++
	}
	f.LastOffsetDelta = int32(f.LastOffset - it.header.BaseOffset)
	return it.err
}

func (f *Found) add(it *Iterator, err error) {
	if len(f.Errors) < maxRecordErrors {
		f.Errors = append(f.Errors, &RecordError{Offset: it.header.BaseOffset, Index: f.Count, Err: err})
	}
}

// CheckProduced checks the header of a batch that a client produced, by itself: what Kafka refuses with INVALID_RECORD
// before it looks at the records. The checksum and the size limit are the caller's.
func (h *BatchHeader) CheckProduced() error {
	switch {
	case h.Count <= 0:
		return invalidf("record count %d, a produced batch has 1 at least", h.Count)
	case h.LastOffsetDelta < 0 || h.LastOffsetDelta != h.Count-1:
		return invalidf("last offset delta %d does not fit %d records", h.LastOffsetDelta, h.Count)
	case h.Control():
		return invalidf("clients must not write control records")
	case h.HasProducer() && h.BaseSequence < 0:
		return invalidf("sequence number %d from producer id %d", h.BaseSequence, h.ProducerID)
	case !h.Codec().Valid():
		return invalidf("%s in attributes", h.Codec())
	}
	return nil
}
