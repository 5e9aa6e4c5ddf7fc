package groupmember

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// A topic whose name arrives while the member ends is given back whoever comes first; else the client would ask for it in
// every refresh from then on, or forget it although another user of the client wants it.
func TestNamesThatArriveLateAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := wiretest.NewCluster(1, func(*wiretest.Request) message.Response { return nil })
		defer peer.Close()
		peer.SetTopic("late", 0, 1)
		cl, err := client.New(client.Cluster(peer))
		require.NoError(t, err)
		defer cl.Close(t.Context())
		asked := func() (late bool) {
			time.Sleep(time.Minute)
			before := len(peer.Requests(wire.KeyMetadata))
			cl.RefreshMetadata()
			time.Sleep(time.Minute)
			after := peer.Requests(wire.KeyMetadata)[before:]
			require.NotEmpty(t, after)
			for _, r := range after {
				for _, topic := range r.Body.(*message.MetadataRequest).Topics {
					late = late || topic.Name != nil && *topic.Name == "late"
				}
			}
			return late
		}
		race := func() {
			m := &Member{cl: cl}
			var both sync.WaitGroup
			both.Go(func() { m.found("late") })
			both.Go(func() {
				m.mu.Lock()
				m.ended = true
				m.mu.Unlock()
				m.untrack()
			})
			both.Wait()
		}
		for range 2000 {
			race()
		}
		require.False(t, asked(), "nobody wants it")
		cl.AddTopics("late")
		for range 2000 {
			race()
		}
		require.True(t, asked(), "somebody wants it")
	})
}
