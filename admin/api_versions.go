package admin

import (
	"context"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// APIVersion is a row of APIVersions: the versions of one request that a broker takes.
type APIVersion struct {
	Key      wire.Key
	Min, Max int16
}

// APIVersions gives what one broker speaks, by key. Requests that this client does not know are listed too.
func (a *Admin) APIVersions(ctx context.Context, broker int32) ([]APIVersion, error) {
	req := message.NewApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = client.SoftwareName, client.SoftwareVersion // brokers refuse an empty name
	resp, err := request[*message.ApiVersionsResponse](ctx, a, client.Broker(broker), req)
	if err != nil {
		return nil, err
	}
	rows := make([]APIVersion, 0, len(resp.ApiKeys))
	for _, k := range resp.ApiKeys {
		rows = append(rows, APIVersion{wire.Key(k.ApiKey), k.MinVersion, k.MaxVersion})
	}
	slices.SortFunc(rows, func(x, y APIVersion) int { return int(x.Key) - int(y.Key) })
	return rows, nil
}
