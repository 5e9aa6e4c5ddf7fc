package machine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// story steps events and tells states and effects in their order.
func story(events ...ClaimEvent) (out []string) {
	var c Claim
	for _, ev := range events {
		eff := c.Step(ev)
		line := fmt.Sprintf("%s -> %s:", ev, c.State())
		for _, e := range []struct {
			on   bool
			name string
		}{{eff.Read, "read"}, {eff.Stop, "stop"}, {eff.Drain, "drain"}, {eff.Abandon, "abandon"}, {eff.Release, "release"},
			{eff.Commit, "commit"}, {eff.Confirm, "confirm"}, {eff.Report, "report"}} {
			if e.on {
				line += " " + e.name
			}
		}
		out = append(out, line)
	}
	return out
}

func TestClaimIsGivenUpInOrder(t *testing.T) {
	require.Equal(t, []string{
		"resolved -> reading: read",
		"revoking -> draining: stop drain",
		"drained -> releasing: release",
		"released -> committing: commit",
		"committed -> ended: abandon confirm",
	}, story(ClaimResolved, ClaimRevoking, ClaimDrained, ClaimReleased, ClaimCommitted))
}

func TestOverdueDrainAbandonsWhatIsInHandAndCommitsTheRest(t *testing.T) {
	require.Equal(t, []string{
		"resolved -> reading: read",
		"revoking -> draining: stop drain",
		"overdue -> releasing: abandon release",
		"drained -> releasing:",
		"released -> committing: commit",
	}, story(ClaimResolved, ClaimRevoking, ClaimOverdue, ClaimDrained, ClaimReleased))
}

func TestClaimWithoutAStartIsGivenUpWithoutReading(t *testing.T) {
	require.Equal(t, []string{
		"revoking -> releasing: release",
		"resolved -> releasing:",
		"released -> committing: commit",
	}, story(ClaimRevoking, ClaimResolved, ClaimReleased))
}

func TestLostClaimCommitsNothing(t *testing.T) {
	for _, before := range [][]ClaimEvent{{}, {ClaimResolved}, {ClaimResolved, ClaimRevoking}, {ClaimResolved, ClaimRevoking, ClaimDrained},
		{ClaimResolved, ClaimRevoking, ClaimDrained, ClaimReleased}} {
		lines := story(append(before, ClaimLost, ClaimReleased, ClaimCommitted, ClaimLost)...)
		require.Contains(t, lines[len(before)], "lost -> ended:")
		require.Contains(t, lines[len(before)], "abandon report")
		for _, line := range lines[len(before)+1:] {
			require.Regexp(t, `-> ended:$`, line)
		}
	}
}

// TestClaimTableIsComplete: what is not in the table has no effect, and commit and confirmation are reached in one way.
func TestClaimTableIsComplete(t *testing.T) {
	commits, confirms := 0, 0
	for s := range claimStates {
		for ev := range claimEvents {
			step, ok := claimTable[s][ev]
			if !ok {
				c := Claim{s}
				require.Zero(t, c.Step(ev), "%s in %s", ev, s)
				require.Equal(t, s, c.State())
				continue
			}
			require.Greater(t, step.next, s, "claims only go on")
			if step.eff.Commit {
				commits++
				require.Equal(t, ClaimReleasing, s)
			}
			if step.eff.Confirm {
				confirms++
				require.Equal(t, ClaimCommitting, s)
			}
			require.Equal(t, ev == ClaimLost, step.eff.Report)
			require.Equal(t, s == ClaimReading && ev != ClaimResolved, step.eff.Stop)
		}
	}
	require.Equal(t, 1, commits)
	require.Equal(t, 1, confirms)
}
