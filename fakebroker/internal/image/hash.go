package image

import "github.com/zeebo/xxh3"

// Hash returns a fingerprint of everything in the image but its offset. Nodes that have applied the same records have
// images of equal hash (invariant R9); tests and debugging compare them. It costs as much as writing a checkpoint.
func (i *Image) Hash() (uint64, error) {
	h := xxh3.New()
	var buf []byte
	for r := range i.Records() {
		var err error
		if buf, err = r.AppendValue(buf[:0]); err != nil {
			return 0, err
		}
		if _, err = h.Write(buf); err != nil {
			return 0, err
		}
	}
	return h.Sum64(), nil
}
