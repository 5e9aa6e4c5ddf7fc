package server

import (
	"maps"
	"regexp"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// softwareName is what KIP-511 allows a client to call itself.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

func handleApiVersions(b *Broker, r *Request) {
	req := r.Body.(*message.ApiVersionsRequest)
	resp := message.NewApiVersionsResponse()
	if r.Version >= 3 && (!softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion)) {
		resp.ErrorCode = int16(errcode.InvalidRequest)
		r.Respond(resp)
		return
	}
	if r.Version >= 5 {
		if code := b.meant(req); code != errcode.None {
			resp.ErrorCode = int16(code)
			r.Respond(resp)
			return
		}
	}
	resp.ApiKeys = advertised
	b.fillFeatures(r, resp)
	r.Respond(resp)
}

// meant tells whether a client that says whom it expects here has come to the right broker: its address may belong to
// another cluster or node by now. Cluster and node come together or not at all.
func (b *Broker) meant(req *message.ApiVersionsRequest) errcode.Code {
	switch cluster, node := req.ClusterId, req.NodeId; {
	case (cluster == nil) != (node == -1):
		return errcode.InvalidRequest
	case cluster != nil && (*cluster != b.clusterID() || node != b.opts.NodeID):
		return errcode.RebootstrapRequired
	}
	return errcode.None
}

// advertised lists the implemented APIs with the versions that Apache Kafka 4.4 advertises, in ascending order. It is
// filled by init because the handlers it is made from lead back here.
var advertised []message.ApiVersion

func init() {
	for k := range handlers {
		low, high, ok := wire.BrokerVersions(k)
		if ok {
			advertised = append(advertised, message.ApiVersion{ApiKey: int16(k), MinVersion: low, MaxVersion: high})
		}
	}
	slices.SortFunc(advertised, func(a, b message.ApiVersion) int { return int(a.ApiKey) - int(b.ApiKey) })
}

// answerUnknownApiVersions tells a client from the future which versions of ApiVersions there are: version 0 of the
// body, in any case with response header 0, and that one range alone.
func (b *Broker) answerUnknownApiVersions(r *Request) {
	low, high, _ := wire.BrokerVersions(wire.KeyApiVersions)
	resp := message.NewApiVersionsResponse()
	resp.ErrorCode = int16(errcode.UnsupportedVersion)
	resp.ApiKeys = []message.ApiVersion{{ApiKey: int16(wire.KeyApiVersions), MinVersion: low, MaxVersion: high}}
	r.Version = 0
	r.Respond(resp)
}

// fillFeatures adds what the broker supports and what the cluster has finalised (KIP-584). Clients of version 3 cannot
// stand a feature whose lowest level is 0, so those are left out for them.
func (b *Broker) fillFeatures(r *Request, resp *message.ApiVersionsResponse) {
	if r.Version < 3 {
		return
	}
	for _, f := range image.SupportedFeatures() {
		if f.Min > 0 || r.Version > 3 {
			resp.SupportedFeatures = append(resp.SupportedFeatures,
				message.SupportedFeatureKey{Name: f.Name, MinVersion: f.Min, MaxVersion: f.Max})
		}
	}
	levels, epoch := b.Image().Features()
	resp.FinalizedFeaturesEpoch = epoch
	if kraft := b.driver.KRaftVersion(); kraft > 0 { // the quorum keeps it in its control records, not in the image
		resp.FinalizedFeatures = append(resp.FinalizedFeatures,
			message.FinalizedFeatureKey{Name: image.KRaftFeature, MaxVersionLevel: kraft, MinVersionLevel: kraft})
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		resp.FinalizedFeatures = append(resp.FinalizedFeatures,
			message.FinalizedFeatureKey{Name: name, MaxVersionLevel: levels[name], MinVersionLevel: levels[name]})
	}
}
