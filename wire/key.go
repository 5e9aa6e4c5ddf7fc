package wire

import "strconv"

// Key is the number of an API in request headers; the constants KeyProduce ... are its values.
type Key int16

// api is one line of the generated table.
type api struct {
	name         string
	min, max     int16 // versions that the messages have; max < min: Kafka 4 has removed the API
	stable       int16 // latest version that is not marked unstable
	flexibleFrom int16 // -1: no flexible version
	broker       bool  // answered on broker listeners
	controller   bool  // answered on controller listeners
}

func (k Key) api() *api {
	if k < 0 || int(k) >= len(apis) {
		return nil
	}
	return &apis[k]
}

// Keys is the number of API keys: keys are 0 to Keys-1, with the removed ones among them.
const Keys = Key(len(apis))

// Valid reports whether Apache Kafka 4.4 has the API: the key exists and has versions.
func (k Key) Valid() bool {
	a := k.api()
	return a != nil && a.max >= a.min
}

// String is the API's name, such as "Produce", or its number.
func (k Key) String() string {
	if a := k.api(); a != nil {
		return a.name
	}
	return "Key(" + strconv.Itoa(int(k)) + ")"
}

// Versions is the range of versions that the messages of this module have, an unstable last one with them. ok is false
// for keys that do not exist or were removed in Kafka 4.
func Versions(k Key) (min, max int16, ok bool) {
	if !k.Valid() {
		return 0, -1, false
	}
	return apis[k].min, apis[k].max, true
}

// LatestStable is the latest version of an API that is not marked unstable, -1 for keys that are not valid. Clients ask
// for no later one.
func LatestStable(k Key) int16 {
	if !k.Valid() {
		return -1
	}
	return apis[k].stable
}

// Flexible reports whether a version of an API uses compact lengths and tagged fields (KIP-482).
func Flexible(k Key, version int16) bool {
	return k.Valid() && apis[k].flexibleFrom >= 0 && version >= apis[k].flexibleFrom
}

// BrokerVersions is the range that an Apache Kafka 4.4 broker advertises in ApiVersions on its broker listeners; ok is
// false for APIs that it does not answer there. Produce is advertised from version 0, though 3 is the first one served:
// librdkafka before 2.x took no compression otherwise (KIP-896).
func BrokerVersions(k Key) (min, max int16, ok bool) {
	if !k.Valid() || !apis[k].broker {
		return 0, -1, false
	}
	if k == KeyProduce {
		return 0, apis[k].stable, true
	}
	return apis[k].min, apis[k].stable, true
}

// ControllerVersions is the range that a controller listener advertises.
func ControllerVersions(k Key) (min, max int16, ok bool) {
	if !k.Valid() || !apis[k].controller {
		return 0, -1, false
	}
	return apis[k].min, apis[k].stable, true
}

// HeaderVersions are the versions of the request and response headers that go with a version of an API: 1 and 0 before
// the first flexible version, 2 and 1 from it. ApiVersions responses always have header version 0: a client that asked
// in a version unknown to the broker must be able to read the answer (KIP-511).
func HeaderVersions(k Key, version int16) (request, response int16) {
	if !Flexible(k, version) {
		return 1, 0
	}
	if k == KeyApiVersions {
		return 2, 0
	}
	return 2, 1
}
