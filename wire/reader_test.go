package wire

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrimitivesAreReadAsWritten(t *testing.T) {
	text, id := "clé", UUID{1, 2, 3}
	b := AppendBool(nil, true)
	b = AppendInt8(b, -3)
	b = AppendInt16(b, math.MinInt16)
	b = AppendUint16(b, math.MaxUint16)
	b = AppendInt32(b, math.MinInt32)
	b = AppendUint32(b, math.MaxUint32)
	b = AppendInt64(b, math.MinInt64)
	b = AppendFloat64(b, -0.5)
	b = AppendUUID(b, id)
	b = AppendString(b, text)
	b = AppendCompactString(b, text)
	b = AppendNullableString(b, nil)
	b = AppendNullableString(b, &text)
	b = AppendCompactNullableString(b, nil)
	b = AppendCompactNullableString(b, &text)
	b = AppendBytes(b, []byte{})
	b = AppendCompactBytes(b, []byte{7})
	b = AppendNullableBytes(b, nil)
	b = AppendNullableBytes(b, []byte{})
	b = AppendCompactNullableBytes(b, nil)
	b = AppendCompactNullableBytes(b, []byte{8})
	b = AppendArrayLen(b, -1)
	b = AppendCompactArrayLen(b, -1)
	b = AppendArrayLen(b, 1)
	b = append(b, 9)

	r := NewReader(b)
	require.True(t, r.Bool())
	require.Equal(t, int8(-3), r.Int8())
	require.Equal(t, int16(math.MinInt16), r.Int16())
	require.Equal(t, uint16(math.MaxUint16), r.Uint16())
	require.Equal(t, int32(math.MinInt32), r.Int32())
	require.Equal(t, uint32(math.MaxUint32), r.Uint32())
	require.Equal(t, int64(math.MinInt64), r.Int64())
	require.Equal(t, -0.5, r.Float64())
	require.Equal(t, id, r.UUID())
	require.Equal(t, text, r.String())
	require.Equal(t, text, r.CompactString())
	require.Nil(t, r.NullableString())
	require.Equal(t, &text, r.NullableString())
	require.Nil(t, r.CompactNullableString())
	require.Equal(t, &text, r.CompactNullableString())
	require.Equal(t, []byte{}, r.Bytes())
	require.Equal(t, []byte{7}, r.CompactBytes())
	require.Nil(t, r.NullableBytes())
	require.Equal(t, []byte{}, r.NullableBytes())
	require.Nil(t, r.CompactNullableBytes())
	require.Equal(t, []byte{8}, r.CompactNullableBytes())
	require.Equal(t, -1, r.ArrayLen(false, true, 1, 1))
	require.Equal(t, -1, r.ArrayLen(true, true, 1, 1))
	require.Equal(t, 1, r.ArrayLen(false, false, 1, 1))
	require.Equal(t, []byte{9}, r.Rest())
	require.NoError(t, r.Err())
}

func TestBadLengthsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		read  func(*Reader)
		want  error
		text  string
	}{
		"null string":           {"\xff\xff", func(r *Reader) { _ = r.String() }, ErrMalformed, "length -1"},
		"null compact string":   {"\x00", func(r *Reader) { r.CompactString() }, ErrMalformed, "length -1"},
		"string length -2":      {"\xff\xfe", func(r *Reader) { r.NullableString() }, ErrMalformed, "length -2"},
		"string cut":            {"\x00\x05abcd", func(r *Reader) { _ = r.String() }, ErrTruncated, "5 bytes are needed, 4 are left"},
		"long compact string":   {"\x81\x80\x02" + strings.Repeat("x", 40000), func(r *Reader) { r.CompactString() }, ErrMalformed, "32768 bytes"},
		"null bytes":            {"\xff\xff\xff\xff", func(r *Reader) { r.Bytes() }, ErrMalformed, "length -1"},
		"bytes length -2":       {"\xff\xff\xff\xfe", func(r *Reader) { r.NullableBytes() }, ErrMalformed, "length -2"},
		"null array":            {"\xff\xff\xff\xff", func(r *Reader) { r.Int32s(nil, false, false) }, ErrMalformed, "length -1"},
		"null compact array":    {"\x00", func(r *Reader) { r.Int32s(nil, true, false) }, ErrMalformed, "length -1"},
		"array length -2":       {"\xff\xff\xff\xfe", func(r *Reader) { r.Int32s(nil, false, true) }, ErrMalformed, "length -2"},
		"array count too large": {"\x7f\xff\xff\xff1234", func(r *Reader) { r.Int32s(nil, false, false) }, ErrTruncated, "2147483647 elements"},
		"compact count too large": {"\xff\xff\xff\xff\x0f1234", func(r *Reader) { r.Int8s(nil, true, false) }, ErrTruncated,
			"4294967294 elements"},
		"varint without end": {"\x80\x80", func(r *Reader) { r.Uvarint() }, ErrTruncated, "no end"},
		"varint too long":    {"\x80\x80\x80\x80\x80\x00", func(r *Reader) { r.Uvarint() }, ErrMalformed, "longer than 5 bytes"},
		"empty input":        {"", func(r *Reader) { r.Int64() }, ErrTruncated, "8 bytes are needed, 0 are left"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader([]byte(c.input))
			c.read(r)
			require.ErrorIs(t, r.Err(), c.want)
			require.ErrorIs(t, r.Err(), ErrMalformed, "every decode error is one")
			require.ErrorContains(t, r.Err(), c.text)
		})
	}
}

func TestTheFirstErrorStays(t *testing.T) {
	r := NewReader([]byte{0, 9, 1, 2, 3, 4, 5, 6, 7, 8})
	require.Empty(t, r.String())
	first := r.Err()
	require.Error(t, first)
	require.Zero(t, r.Int8())
	require.Zero(t, r.Int64())
	require.Empty(t, r.Strings(nil, true, false))
	require.Equal(t, first, r.Err())
	require.Zero(t, r.Remaining())
}

func TestTaggedFieldsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		want  error
		text  string
	}{
		"tags fall":      {"\x02\x05\x00\x04\x00", ErrMalformed, "tagged field 4 behind tagged field 5"},
		"tag twice":      {"\x02\x05\x00\x05\x00", ErrMalformed, "tagged field 5 behind tagged field 5"},
		"size too large": {"\x01\x05\x02a", ErrTruncated, "tagged field 5 of 2 bytes, 1 are left"},
		"count too large": {"\xff\xff\xff\xff\x0f", ErrTruncated,
			"4294967295 tagged fields, 0 bytes are left"},
		"left over":  {"\x01\x00\x05abcde", ErrMalformed, "tagged field 0 has 1 bytes too many"},
		"too little": {"\x01\x00\x03abcde", ErrTruncated, "4 bytes are needed, 3 are left"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader([]byte(c.input))
			var kept Tags
			for tags := r.Tags(); tags.Next(); {
				if tags.ID == 0 {
					r.Int32()
				} else {
					kept = tags.Keep(kept)
				}
			}
			require.ErrorIs(t, r.Err(), c.want)
			require.ErrorContains(t, r.Err(), c.text)
			require.Zero(t, r.Remaining())
		})
	}
}

func TestUnknownTagsAreMergedWithKnownOnes(t *testing.T) {
	w := NewWriter(nil)
	unknown := Tags{{ID: 1, Data: []byte("a")}, {ID: 4, Data: []byte("b")}, {ID: 9}}
	w.TagCount(2, unknown)
	for _, id := range []uint32{2, 7} {
		unknown = w.TagsBefore(unknown, id)
		start := w.BeginTag(id)
		w.String(true, strings.Repeat("x", 200))
		w.EndTag(start)
	}
	w.Tags(unknown)
	out, err := w.Result("M", 0)
	require.NoError(t, err)
	var ids []uint32
	r := NewReader(out)
	for tags := r.Tags(); tags.Next(); {
		ids = append(ids, tags.ID)
		if tags.ID == 2 || tags.ID == 7 {
			require.Equal(t, strings.Repeat("x", 200), r.CompactString())
		} else {
			tags.Keep(nil)
		}
	}
	require.NoError(t, r.Err())
	require.Zero(t, r.Remaining())
	require.Equal(t, []uint32{1, 2, 4, 7, 9}, ids)
}

func TestTagsOutOfOrderAreNotWritten(t *testing.T) {
	w := NewWriter(nil)
	w.Tags(Tags{{ID: 3}, {ID: 3}})
	_, err := w.Result("M", 2)
	require.ErrorIs(t, err, ErrTagOrder)
	w = NewWriter(nil)
	w.TagsBefore(Tags{{ID: 3}}, 3)
	_, err = w.Result("M", 2)
	require.ErrorIs(t, err, ErrTagOrder)
	require.EqualError(t, err, "wire: M version 2: UnknownTags: tagged fields out of order: tag 3 is a known field")
}

func TestStringsTooLongAreNotWritten(t *testing.T) {
	for _, flexible := range []bool{false, true} {
		w := NewWriter(nil)
		w.String(flexible, strings.Repeat("x", MaxString))
		_, err := w.Result("M", 0)
		require.NoError(t, err)
		w = NewWriter(nil)
		w.String(flexible, strings.Repeat("x", MaxString+1))
		_, err = w.Result("M", 0)
		require.ErrorIs(t, err, ErrTooLong)
		require.ErrorContains(t, err, "32768 bytes")
	}
}

// A million empty strings are a million bytes of input and sixteen million of memory: as much as is allowed. Nothing is
// allocated for a count that cannot be true.
func TestMemoryIsBounded(t *testing.T) {
	measure := func(input []byte, read func(*Reader)) (allocated uint64, err error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := NewReader(input)
		read(r)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, r.Err()
	}
	empties := append(AppendCompactArrayLen(nil, 1<<20), make([]byte, 1<<20)...)
	for i := range empties[len(empties)-1<<20:] {
		empties[len(empties)-1<<20+i] = 1
	}
	used, err := measure(empties, func(r *Reader) { r.Strings(nil, true, false) })
	require.NoError(t, err)
	require.LessOrEqual(t, used, uint64(16*len(empties)+budgetBase+4096))

	// A struct of 100 bytes that may be one byte on the wire would be a hundredfold.
	type large struct{ _ [100]byte }
	used, err = measure(empties, func(r *Reader) { ReadArray[large](r, nil, true, false, 1) })
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "bytes of memory")
	require.Less(t, used, uint64(4096))

	used, err = measure([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, func(r *Reader) { r.Int64s(nil, true, false) })
	require.Error(t, err)
	require.Less(t, used, uint64(4096))
}

func TestSlicesAreReusedAndStringsCopied(t *testing.T) {
	input := append(AppendCompactArrayLen(nil, 2), 0, 0, 0, 1, 0, 0, 0, 2)
	old := make([]int32, 5)
	got := NewReader(input).Int32s(old, true, false)
	require.Equal(t, []int32{1, 2}, got)
	require.Same(t, &old[0], &got[0])

	input = AppendCompactString(nil, "abc")
	s := NewReader(input).CompactString()
	input[1] = 'x'
	require.Equal(t, "abc", s)

	input = AppendCompactBytes(nil, []byte("abc"))
	b := NewReader(input).CompactBytes()
	input[1] = 'x'
	require.Equal(t, "xbc", string(b))
	require.Equal(t, 3, cap(b), "appending to a field must not write into its neighbour")
}

func TestAddMakesElementsWithDefaults(t *testing.T) {
	var list []defaulted
	Add(&list).name = "a"
	Add(&list)
	require.Equal(t, []defaulted{{name: "a", epoch: -1}, {epoch: -1}}, list)
}

type defaulted struct {
	name  string
	epoch int32
}

func (d *defaulted) SetDefaults() { *d = defaulted{epoch: -1} }
