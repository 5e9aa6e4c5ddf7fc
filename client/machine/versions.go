package machine

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Versions are the ranges a broker advertised in ApiVersions.
type Versions struct {
	ranges [wire.Keys]versionRange
	known  bool
}

type versionRange struct{ min, max int16 }

// NewVersions takes an answer. Keys this library does not know are left out.
func NewVersions(keys []message.ApiVersion) *Versions {
	v := &Versions{known: true}
	for i := range v.ranges {
		v.ranges[i] = versionRange{0, -1}
	}
	for _, k := range keys {
		if k.ApiKey >= 0 && wire.Key(k.ApiKey) < wire.Keys {
			v.ranges[k.ApiKey] = versionRange{k.MinVersion, k.MaxVersion}
		}
	}
	return v
}

// Range is what the broker speaks; max is -1 when it does not know the request.
func (v *Versions) Range(k wire.Key) (min, max int16) {
	if v == nil || k < 0 || k >= wire.Keys {
		return 0, -1
	}
	return v.ranges[k].min, v.ranges[k].max
}

// Pick is the latest version that both sides know within [least, most]; most of zero or less stands for the
// latest stable one.
func (v *Versions) Pick(k wire.Key, least, most int16) (int16, error) {
	ourMin, ourMax, ok := wire.Versions(k)
	if !ok {
		return 0, &VersionError{Key: k, WantMin: least, WantMax: most, BrokerMax: -1}
	}
	if most <= 0 {
		most = wire.LatestStable(k)
	}
	low, high := max(ourMin, least), min(ourMax, most)
	brokerMin, brokerMax := v.Range(k)
	pick := min(high, brokerMax)
	if brokerMax < 0 || pick < low || pick < brokerMin {
		return 0, &VersionError{Key: k, WantMin: low, WantMax: high, BrokerMin: brokerMin, BrokerMax: brokerMax}
	}
	return pick, nil
}

// VersionError says which versions each side knows.
type VersionError struct {
	Key                  wire.Key
	WantMin, WantMax     int16
	BrokerMin, BrokerMax int16 // BrokerMax is -1 when the broker does not know the request at all
}

// Error names both ranges.
func (e *VersionError) Error() string {
	if e.BrokerMax < 0 {
		return fmt.Sprintf("the broker does not know %v requests", e.Key)
	}
	return fmt.Sprintf("%v is needed in version %d to %d, the broker speaks %d to %d", e.Key, e.WantMin, e.WantMax, e.BrokerMin, e.BrokerMax)
}
