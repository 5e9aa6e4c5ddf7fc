package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
)

func TestTopicsArePrintedInEveryForm(t *testing.T) {
	startBroker(t, fakebroker.Topic("orders", 3), fakebroker.TopicWith(fakebroker.TopicSpec{Name: "users", Partitions: 1, Configs: map[string]string{"cleanup.policy": "compact"}}))
	for _, form := range []string{"table", "json", "jsonl"} {
		golden(t, "topics_list."+form, succeeds(t, "topics", "list", "-o", form))
		golden(t, "topics_describe."+form, succeeds(t, "topics", "describe", "users", "orders", "--output", form))
	}
	require.Equal(t, succeeds(t, "topic", "ls"), succeeds(t, "topics", "list"), "the singular is the same")
	require.Empty(t, succeeds(t, "topics", "describe", "--under-replicated"), "nothing is wrong")
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(succeeds(t, "topics", "list", "-o", "json")), &list))
	require.Equal(t, map[string]any{"name": "orders", "partitions": 3.0, "replicas": 1.0, "internal": false}, list[0])
}

func TestTopicsAreCreatedAlteredAndDeleted(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("old", 1))
	golden(t, "topics_create.table", succeeds(t, "topics", "create", "orders", "users", "-p", "2", "--config", "retention.ms=1000", "--config", "cleanup.policy=compact,delete"))
	require.Contains(t, succeeds(t, "topics", "describe", "users"), "configs cleanup.policy=compact,delete retention.ms=1000")
	require.Contains(t, fails(t, exitFailed, "topics", "create", "old", "new"), "Topic 'old' already exists.")
	require.Contains(t, succeeds(t, "topics", "list"), "new", "what could be created is")
	require.Empty(t, succeeds(t, "topics", "create", "old", "--if-not-exists"))
	require.Contains(t, succeeds(t, "topics", "create", "only-a-test", "--dry-run"), "only-a-test")
	require.NotContains(t, succeeds(t, "topics", "list"), "only-a-test")

	succeeds(t, "topics", "alter", "orders", "--partitions", "4", "--config", "retention.ms=5", "--delete-config", "cleanup.policy")
	out := succeeds(t, "topics", "describe", "orders")
	require.Contains(t, out, "partitions 4")
	require.Contains(t, out, "configs retention.ms=5\n")
	require.Contains(t, fails(t, exitFailed, "topics", "alter", "orders", "-p", "1"), "INVALID_PARTITIONS")
	require.Contains(t, fails(t, exitUsage, "topics", "alter", "orders"), "nothing to change")
	require.Contains(t, fails(t, exitFailed, "topics", "alter", "orders", "--delete-config", "retention.msx"), "topic configuration 'retention.msx' does not exist; did you mean 'retention.ms'?")
	require.Contains(t, fails(t, exitFailed, "topics", "alter", "ordrs", "--delete-config", "retention.ms"), "topic 'ordrs' does not exist")

	k.send(t, "orders", time.Now(), "a", "b")
	code, plan, errs := typed(t, "", "topics", "delete", "orders", "users")
	require.Zero(t, code)
	require.Contains(t, errs, "nothing was deleted; add --yes")
	golden(t, "topics_delete.table", plan)
	require.Contains(t, succeeds(t, "topics", "list"), "orders")
	succeeds(t, "topics", "delete", "orders", "--yes")
	require.NotContains(t, succeeds(t, "topics", "list"), "orders")
}

func TestAMisspeltTopicIsAnswered(t *testing.T) {
	startBroker(t, fakebroker.Topic("orders", 1), fakebroker.Topic("users", 1))
	for _, args := range [][]string{{"topics", "describe", "ordrs"}, {"topics", "delete", "ordrs"}, {"topics", "alter", "ordrs", "-p", "3"}, {"produce", "ordrs"}, {"consume", "ordrs"},
		{"groups", "reset-offsets", "g", "--to-latest", "--topic", "ordrs"}} {
		errs := fails(t, exitFailed, args...)
		require.True(t, strings.HasPrefix(errs, "ottla: topic 'ordrs' does not exist; did you mean 'orders'?\nottla: create it with 'ottla topics create ordrs'"), errs)
	}
	require.NotContains(t, fails(t, exitFailed, "topics", "describe", "something-else"), "did you mean")
	out := fails(t, exitFailed, "topics", "describe", "ordrs", "users")
	require.Equal(t, 2, strings.Count(out, "\n"), "one line what failed, one line what to do")
}
