package server

import (
	"slices"
	"strconv"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleListConfigResources lists what has, or could have, configs: every topic and broker, and the groups and client
// metrics subscriptions that were given some. Version 0 knows subscriptions only.
func handleListConfigResources(b *Broker, r *Request) {
	req := r.Body.(*message.ListConfigResourcesRequest)
	resp := message.NewListConfigResourcesResponse()
	known := []int8{int8(config.ClientMetricsResource)}
	if r.Version > 0 {
		known = []int8{int8(config.BrokerLoggerResource), int8(config.BrokerResource), int8(config.TopicResource),
			int8(config.GroupResource), int8(config.ClientMetricsResource)}
	}
	types := req.ResourceTypes
	if len(types) == 0 {
		types = known
	}
	for _, t := range types {
		if !slices.Contains(known, t) {
			resp.ErrorCode = int16(errcode.UnsupportedVersion)
			r.Respond(resp)
			return
		}
	}
	img := b.Image()
	for _, t := range known {
		if slices.Contains(types, t) {
			for _, name := range configurable(img, config.ResourceType(t)) {
				resp.ConfigResources = append(resp.ConfigResources, message.ConfigResource{ResourceName: name, ResourceType: t})
			}
		}
	}
	r.Respond(resp)
}

func configurable(img *image.Image, t config.ResourceType) (names []string) {
	switch t {
	case config.TopicResource:
		return img.TopicNames()
	case config.BrokerResource, config.BrokerLoggerResource:
		for _, b := range img.Brokers() {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
	default:
		for _, r := range img.ConfigResources() {
			if r.Type == t {
				names = append(names, r.Name)
			}
		}
	}
	return names
}
