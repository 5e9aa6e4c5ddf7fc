package image

import (
	"errors"

	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// Loader turns the stream of committed records into images. Records of a metadata transaction (KIP-868) take effect
// together at its end and are invisible before; what an aborted one wrote never was.
//
//	         Begin                     End: the delta of the transaction becomes part of the image
//	outside ───────► in transaction ───────────────────► outside
//	                      └────── Abort: the delta is dropped ──►
type Loader struct {
	image *Image // newest image handed out
	delta *Delta // records since; nil when there are none
	// While a transaction is open its records go to tx, on top of what delta holds.
	tx   *Delta
	open bool
}

// NewLoader returns a loader that goes on from an image.
func NewLoader(from *Image) *Loader { return &Loader{image: from} }

// Image returns the newest image that Take returned.
func (l *Loader) Image() *Image { return l.image }

// Apply takes the next record. Errors are final: the loader has lost track.
func (l *Loader) Apply(offset int64, epoch int32, rec Record) error {
	switch rec.Record.(type) {
	case *logrecord.BeginTransactionRecord:
		if l.open {
			return errors.New("image: metadata transaction begins within another one")
		}
		l.open = true
	case *logrecord.AbortTransactionRecord:
		if !l.open {
			return errors.New("image: metadata transaction aborts, but none is open")
		}
		l.open, l.tx = false, nil
	case *logrecord.EndTransactionRecord:
		if !l.open {
			return errors.New("image: metadata transaction ends, but none is open")
		}
		l.open = false
		if l.tx != nil {
			l.delta, l.tx = l.tx, nil
		}
	}
	d := l.current()
	return d.Apply(offset, epoch, rec)
}

// current returns the delta that records go to now. A transaction works on a copy of the pending delta's result, which
// keeps that delta's list of changes, so that aborting it costs nothing.
func (l *Loader) current() *Delta {
	if l.delta == nil {
		l.delta = NewDelta(l.image)
	}
	if !l.open {
		return l.delta
	}
	if l.tx == nil {
		l.tx = l.delta.fork()
	}
	return l.tx
}

// Take ends the batch: it returns what has changed since the last Take and the image with it, or nil while there is
// nothing to tell, because nothing came or a transaction is open.
func (l *Loader) Take() (*Delta, *Image) {
	if l.open || l.delta == nil {
		return nil, l.image
	}
	d := l.delta
	l.image, l.delta = d.Image(), nil
	return d, l.image
}
