package wiretest

import (
	"encoding/binary"
	"sync"

	"github.com/ottla-kafka/ottla/wire/message"
)

// Replay is a script that gives the answers a Tap wrote down: each request gets the answer that the same bytes (the
// correlation id apart) got, the first one first, and the last one for ever after. A request that was never recorded
// is left to the peer.
func Replay(frames []TapFrame) Script {
	answers := exchanges(frames)
	var mu sync.Mutex
	return func(r *Request) message.Response {
		mu.Lock()
		defer mu.Unlock()
		key := withoutCorrelation(r.Raw)
		recorded := answers[key]
		if len(recorded) == 0 {
			return nil
		}
		if len(recorded) > 1 {
			answers[key] = recorded[1:]
		}
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(recorded[0])))
		frame = append(frame, recorded[0]...)
		binary.BigEndian.PutUint32(frame[4:], uint32(r.CorrelationID))
		return Bytes(frame)
	}
}

// exchanges pairs requests and answers of each connection: a broker answers in order.
func exchanges(frames []TapFrame) map[string][][]byte {
	out := make(map[string][][]byte)
	waiting := make(map[int][]TapFrame)
	for _, f := range frames {
		switch {
		case len(f.Frame) < 8 && f.Request || len(f.Frame) < 4:
		case f.Request:
			waiting[f.Conn] = append(waiting[f.Conn], f)
		default:
			queue := waiting[f.Conn]
			for len(queue) > 0 { // a request without an answer (acks=0) is passed over
				request := queue[0].Frame
				queue = queue[1:]
				if string(request[4:8]) == string(f.Frame[:4]) {
					key := withoutCorrelation(request)
					out[key] = append(out[key], f.Frame)
					break
				}
			}
			waiting[f.Conn] = queue
		}
	}
	return out
}

func withoutCorrelation(request []byte) string { return string(request[:4]) + string(request[8:]) }
