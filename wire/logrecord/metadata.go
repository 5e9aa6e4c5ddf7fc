package logrecord

import (
	"fmt"
	"math"

	"github.com/ottla-kafka/ottla/wire"
)

// frameVersion is the only version of the frame around metadata records. The value of a record in the log
// __cluster_metadata is, all numbers unsigned varints:
//
//	frame version | type of the record | version of the record | body
const frameVersion = 1

// AppendFramed appends a metadata record with its frame, as it is the value of a record in the metadata log.
func AppendFramed(dst []byte, rec Record, version int16) ([]byte, error) {
	if version < 0 {
		return dst, wire.VersionError(fmt.Sprintf("metadata record %d", rec.APIKey()), version, 0, math.MaxInt16)
	}
	dst = wire.AppendUvarint(dst, frameVersion)
	dst = wire.AppendUvarint(dst, uint32(rec.APIKey()))
	dst = wire.AppendUvarint(dst, uint32(version))
	return rec.AppendTo(dst, version)
}

// ReadFramed reads the value of a record in the metadata log and returns the metadata record and its version. Every
// byte must be used: a broker that goes on after half a metadata record would disagree with the others about the
// cluster, so there is no leniency here. Bytes fields of the record point into value.
func ReadFramed(value []byte) (Record, int16, error) {
	r := wire.NewReader(value)
	frame, key, version := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if err := r.Result("metadata record frame", frameVersion); err != nil {
		return nil, 0, err
	}
	if frame != frameVersion {
		return nil, 0, fmt.Errorf("logrecord: metadata record with frame version %d, %d is known: %w", frame, frameVersion, wire.ErrUnsupportedVersion)
	}
	if key > math.MaxInt16 || version > math.MaxInt16 {
		return nil, 0, fmt.Errorf("logrecord: metadata record of type %d version %d: %w", key, version, wire.ErrMalformed)
	}
	rec := NewMetadataRecord(int16(key))
	if rec == nil {
		return nil, 0, fmt.Errorf("logrecord: metadata record of type %d: %w", key, ErrUnknownType)
	}
	if err := rec.ReadFrom(r, int16(version)); err != nil {
		return nil, 0, err
	}
	if r.Remaining() != 0 {
		return nil, 0, fmt.Errorf("logrecord: metadata record of type %d version %d has %d bytes too many: %w",
			key, version, r.Remaining(), wire.ErrMalformed)
	}
	return rec, int16(version), nil
}
