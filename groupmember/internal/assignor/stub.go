package assignor

import "github.com/ottla-kafka/ottla/groupmember/machine"

type tps = []machine.TopicPartition

func (Range) Assign([]machine.TopicRacks, []machine.Subscription) (map[string]tps, error) {
	return nil, nil
}
func (RoundRobin) Assign([]machine.TopicRacks, []machine.Subscription) (map[string]tps, error) {
	return nil, nil
}
func (Sticky) Assign([]machine.TopicRacks, []machine.Subscription) (map[string]tps, error) {
	return nil, nil
}
func (CooperativeSticky) Assign([]machine.TopicRacks, []machine.Subscription) (map[string]tps, error) {
	return nil, nil
}
func (Sticky) UserData(tps, int32) []byte            { return nil }
func (CooperativeSticky) UserData(tps, int32) []byte { return nil }
