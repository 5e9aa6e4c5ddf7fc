package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
)

type Inspect struct{ Group string }
type ForceRebalance struct{ Group string }
type FenceMember struct{ Group, Member string }
type ExpireSession struct{ Group, Member string }

func (m *Machine) inspect(coordinator.Request, Inspect, *coordinator.Result)                 {}
func (m *Machine) force(time.Time, coordinator.Request, ForceRebalance, *coordinator.Result) {}
func (m *Machine) fence(time.Time, coordinator.Request, FenceMember, *coordinator.Result)    {}
func (m *Machine) expireSession(time.Time, coordinator.Request, ExpireSession, *coordinator.Result) {
}
