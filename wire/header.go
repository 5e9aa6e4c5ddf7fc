package wire

// AppendRequestHeader appends the header of a request: api key, api version, correlation id, client id and, in flexible
// versions, no tagged fields. The client id keeps its int16 length in every version, so that a broker can read it
// before it knows whether it knows the version. A client id beyond MaxString is cut.
func AppendRequestHeader(dst []byte, k Key, version int16, correlationID int32, clientID *string) []byte {
	dst = AppendInt16(dst, int16(k))
	dst = AppendInt16(dst, version)
	dst = AppendInt32(dst, correlationID)
	if clientID != nil && len(*clientID) > MaxString {
		cut := (*clientID)[:MaxString]
		clientID = &cut
	}
	dst = AppendNullableString(dst, clientID)
	if request, _ := HeaderVersions(k, version); request >= 2 {
		dst = append(dst, 0)
	}
	return dst
}

// AppendResponseHeader appends the header of a response: the correlation id and, in flexible versions, no tagged
// fields.
func AppendResponseHeader(dst []byte, k Key, version int16, correlationID int32) []byte {
	dst = AppendInt32(dst, correlationID)
	if _, response := HeaderVersions(k, version); response >= 1 {
		dst = append(dst, 0)
	}
	return dst
}

// RequestHeader is a request's header as a broker reads it.
type RequestHeader struct {
	Key           Key
	Version       int16
	CorrelationID int32
	ClientID      *string // nil: the client did not give one
	Tags          Tags
}

// ReadRequestHeader reads the header of a request and leaves the reader at the body. For a key that does not exist the
// header is read as one of version 1: key, version and correlation id can be trusted then, the rest cannot.
func ReadRequestHeader(r *Reader) (RequestHeader, error) {
	h := RequestHeader{Key: Key(r.Int16()), Version: r.Int16(), CorrelationID: r.Int32()}
	h.ClientID = r.NullableString()
	if request, _ := HeaderVersions(h.Key, h.Version); request >= 2 {
		h.Tags = r.UnknownTags(nil)
	}
	return h, r.Result("RequestHeader", h.Version)
}

// ReadResponseHeader reads the header of the response to a request of the given key and version, and leaves the reader
// at the body. It returns the correlation id.
func ReadResponseHeader(r *Reader, k Key, version int16) (int32, error) {
	id := r.Int32()
	if _, response := HeaderVersions(k, version); response >= 1 {
		r.UnknownTags(nil)
	}
	return id, r.Result("ResponseHeader", version)
}
