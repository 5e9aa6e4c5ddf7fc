package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
)

// TestGroupsResumeAfterRestart restarts ottla serve below groups of both protocols, once in good order and once by kill -9:
// their members stay, go on behind what was committed, and Apache Kafka's tool reads what the coordinator has written.
func TestGroupsResumeAfterRestart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*process){
		"stopped": func(p *process) { p.stop() },
		"killed":  (*process).kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resume(t, end)
		})
	}
}

func resume(t *testing.T, end func(*process)) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	data := t.TempDir()
	args := []string{"--port", fmt.Sprint(reserve(t, 1)), "--data", data, "--topic", fmt.Sprint("resume:", fleetPartitions)}
	ottla := startGroups(t, args...)
	cl := newClient(t, ottla.addr, client.ClientID("harbour"))

	of := func(group string) fleet { return fleet{ottla.addr, group, "resume", "range", 20 * time.Second} }
	crews := map[string][]*member{}
	for group, list := range map[string][]recruit{
		"resume-classic":  recruits("classic", "ottla", "confluent", "sarama"),
		"resume-consumer": recruits("consumer", "java", "ottla", "franz-go"),
	} {
		for _, r := range list {
			crews[group] = append(crews[group], joiners[r.name](t, of(group), r.protocol))
		}
	}
	each := func(do func(f fleet, crew []*member)) {
		for group, crew := range crews {
			do(of(group), crew)
		}
	}
	each(func(f fleet, crew []*member) { awaitOwners(ctx, t, cl, f, crew) })
	before := writeNumbered(ctx, t, cl, "resume", "before", 240)
	each(func(f fleet, crew []*member) { awaitRead(ctx, t, crew, before) })
	each(func(f fleet, _ []*member) { awaitCommitted(ctx, t, cl, f.group) })

	end(ottla)
	ottla = startGroups(t, args...)
	cl = newClient(t, ottla.addr, client.ClientID("harbour"))
	began := time.Now()
	after := writeNumbered(ctx, t, cl, "resume", "after", 240)
	each(func(f fleet, crew []*member) { awaitRead(ctx, t, crew, after) })
	t.Logf("all is read %.1f s after the restart", time.Since(began).Seconds())
	each(func(f fleet, crew []*member) { awaitOwners(ctx, t, cl, f, crew) })
	each(func(f fleet, crew []*member) {
		for _, m := range crew {
			require.NoError(t, m.leave(), m.name)
		}
		for _, value := range before {
			times := 0
			for _, m := range crew {
				times += m.share.read[value]
			}
			require.Equal(t, 1, times, "%s: %s was committed before the restart", f.group, value)
		}
	})
	each(func(f fleet, _ []*member) { awaitCommitted(ctx, t, cl, f.group) })
	require.NoError(t, ottla.stop())
	requireOffsetsDecoded(t, data)
}

// awaitCommitted waits until a group has committed everything that there is.
func awaitCommitted(ctx context.Context, t testing.TB, cl *client.Client, group string) {
	t.Helper()
	eventually(t, group+" has committed everything", func() bool {
		lag, err := admin.New(cl).Lag(ctx, group)
		if err != nil || lag[0].Err != nil || len(lag[0].Partitions) != fleetPartitions {
			return false
		}
		for _, p := range lag[0].Partitions {
			if p.Lag != 0 {
				return false
			}
		}
		return true
	})
}

// requireOffsetsDecoded lets DumpLogSegments read __consumer_offsets as group metadata and offsets.
func requireOffsetsDecoded(t testing.TB, data string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "__consumer_offsets-*", "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := java(t, "", dumpLog, "--offsets-decoder", "--files", strings.Join(files, ","))
	for _, key := range []string{
		`"type":"1","data":{"group":"resume-classic"`, `"type":"1","data":{"group":"resume-consumer"`, // offsets
		`"type":"2","data":{"group":"resume-classic"`, // members and assignment of a classic group
	} {
		require.Contains(t, out, `key: {`+key)
	}
	for _, kind := range []int{3, 5, 6, 7, 8} { // epoch, member, target epoch, target and current assignment of a consumer group
		require.Contains(t, out, fmt.Sprintf(`key: {"type":"%d","data":{"groupId":"resume-consumer"`, kind))
	}
	require.NotContains(t, out, "isvalid: false")
	require.NotContains(t, out, "Could not")
	t.Logf("%d files, %d lines", len(files), strings.Count(out, "\n"))
}
