package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
)

// shop is a broker with a group that is asleep, and one that works.
func shop(t *testing.T) broker {
	k := startBroker(t, fakebroker.Topic("orders", 3))
	k.send(t, "orders", noon, "a", "b", "c", "d", "e")
	k.commit(t, "billing", "orders", 2)
	k.commit(t, "packing", "orders", 4)
	k.join(t, "packing", "till-1", "orders", 0, 1, 2)
	return k
}

func TestGroupsArePrintedInEveryForm(t *testing.T) {
	shop(t)
	for _, form := range []string{"table", "json", "jsonl"} {
		for _, c := range []string{"list", "describe", "members", "lag"} {
			golden(t, "groups_"+c+"."+form, succeeds(t, "groups", c, "-o", form))
		}
	}
	require.NotContains(t, succeeds(t, "groups", "list", "--state", "Stable"), "billing")
	require.Contains(t, succeeds(t, "groups", "list", "--state", "stable"), "packing", "in any case")
	require.NotContains(t, succeeds(t, "groups", "list", "--type", "Share"), "billing")
	require.NotContains(t, succeeds(t, "groups", "lag", "billing"), "packing")
	errs := fails(t, exitFailed, "groups", "describe", "biling", "packing")
	require.Contains(t, errs, "group 'biling' does not exist; did you mean 'billing'?\nottla: see 'ottla groups list'")
}

func TestOffsetsAreResetAfterALook(t *testing.T) {
	shop(t)
	code, out, errs := typed(t, "", "groups", "reset-offsets", "billing", "--shift-by", "-1")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "nothing was changed; add --execute")
	golden(t, "groups_reset.table", out)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--to-latest"}, `"committed":2,"new_offset":5,"lag":0`},
		{[]string{"--shift-by", "-2"}, `"committed":5,"new_offset":3,"lag":2`},
		{[]string{"--to-earliest"}, `"committed":3,"new_offset":0,"lag":5`},
		{[]string{"--to-offset", "99"}, `"committed":0,"new_offset":5,"lag":0`},
		{[]string{"--to-datetime", noon.Add(90 * time.Second).UTC().Format("2006-01-02T15:04:05")}, `"committed":5,"new_offset":2,"lag":3`},
		{[]string{"--by-duration", "P1D"}, `"committed":2,"new_offset":5,"lag":0`},
		{[]string{"--to-current"}, `"committed":5,"new_offset":5,"lag":0`},
		{[]string{"--to-offset=1", "--topic", "orders:0"}, `"committed":5,"new_offset":1,"lag":4`},
	} {
		out := succeeds(t, append([]string{"groups", "reset-offsets", "billing", "--execute", "-o", "jsonl"}, c.args...)...)
		require.Equal(t, `{"group":"billing","topic":"orders","partition":0,`+c.want+`,"executed":true}`+"\n", out)
	}
	require.Contains(t, succeeds(t, "groups", "reset-offsets", "new", "--to-latest", "--topic", "orders", "-o", "jsonl"), `"partition":2`)

	errs = fails(t, exitFailed, "groups", "reset-offsets", "packing", "--to-latest", "--execute")
	require.Contains(t, errs, "its state is Stable with 1 members: stop its consumers")
	require.Contains(t, fails(t, exitFailed, "groups", "reset-offsets", "new", "--to-latest"), "name the partitions")
	require.Contains(t, fails(t, exitUsage, "groups", "reset-offsets", "billing"), "say where to")
	require.Contains(t, fails(t, exitUsage, "groups", "reset-offsets", "billing", "--to-latest", "--to-earliest"), "can't be used together")
	require.Contains(t, fails(t, exitUsage, "groups", "reset-offsets", "billing", "--by-duration", "soon"), "is no duration")
	require.Contains(t, fails(t, exitUsage, "groups", "reset-offsets", "billing", "--to-latest", "--topic", "orders:x"), "want NAME or NAME:P")
}

func TestGroupsAreDeletedAfterALook(t *testing.T) {
	shop(t)
	code, out, errs := typed(t, "", "groups", "delete", "billing", "packing")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "nothing was deleted; add --yes")
	golden(t, "groups_delete.table", out)
	errs = fails(t, exitFailed, "groups", "delete", "billing", "packing", "gone", "--yes")
	require.Contains(t, errs, "NON_EMPTY_GROUP")
	require.Contains(t, errs, "'ottla groups members packing' shows them")
	require.Contains(t, errs, "group 'gone' does not exist")
	left := succeeds(t, "groups", "list")
	require.NotContains(t, left, "billing", "the others are deleted none the less")
	require.Contains(t, left, "packing")
}

func TestTimesAndDurationsAreReadInTheirUsualForms(t *testing.T) {
	now := noon.UTC()
	for text, want := range map[string]time.Time{
		"2026-01-31":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T09:30":          time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC),
		"2026-01-31 09:30:01.5":     time.Date(2026, 1, 31, 9, 30, 1, 5e8, time.UTC),
		"2026-01-31T09:30:00+02:00": time.Date(2026, 1, 31, 7, 30, 0, 0, time.UTC),
		"1700000000000":             noon,
		"-90m":                      noon.Add(-90 * time.Minute),
		"-P1D":                      noon.Add(-24 * time.Hour),
	} {
		got, err := parseTime(text, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "P1DT2H30M": 26*time.Hour + 30*time.Minute, "PT15M": 15 * time.Minute, "P2D": 48 * time.Hour} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "P", "soon", "P1Y", "-5m", "1D", "PT-5M"} {
		_, err := parseDuration(text)
		require.Error(t, err, text)
	}
}
