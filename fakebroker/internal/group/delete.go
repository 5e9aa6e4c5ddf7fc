package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// Delete asks to delete groups. The answer is a []errcode.Code, one for each.
type Delete struct{ Groups []string }

// delete removes groups without members, with their offsets.
func (m *Machine) delete(_ time.Time, r coordinator.Request, req Delete, out *coordinator.Result) {
	out.Divisible = true // a part of it is repeated when the client asks again
	codes := make([]errcode.Code, len(req.Groups))
	seen := make(map[string]bool)
	for i, id := range req.Groups {
		g := m.groups[id]
		switch {
		case g == nil:
			codes[i] = errcode.GroupIdNotFound
			continue
		case g.state() != Empty:
			codes[i] = errcode.NonEmptyGroup
			continue
		case seen[id]:
			continue
		}
		seen[id] = true
		removeAllOffsets(g, out)
		switch {
		case g.consumer != nil:
			g.consumer.tombstones(id, out)
		default:
			out.Tombstone(&logrecord.GroupMetadataKey{Group: id})
		}
		m.changed(id, out)
	}
	out.Reply(r.Ticket, codes)
}
