package fault

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func produceTo(topics ...string) Point {
	return Point{Key: wire.KeyProduce, ClientID: "c", Topics: func() []string { return topics }}
}

func TestRuleStrikesTheChosenRequestsOnly(t *testing.T) {
	var s Set
	require.False(t, s.Active())
	in := s.Add(Produce().Topic("orders").Client("c").After(1).Times(2).LoseResponse())
	require.True(t, s.Active())
	lost := 0
	for range 5 {
		o := s.Match(produceTo("orders", "other"))
		if o.Lose {
			lost++
		}
		o = s.Match(produceTo("other"))
		require.True(t, o.IsZero())
		o = s.Match(Point{Key: wire.KeyFetch, ClientID: "c", Topics: func() []string { return []string{"orders"} }})
		require.True(t, o.IsZero())
	}
	require.Equal(t, 2, lost)
	require.Equal(t, 2, in.Hits())
	in.Remove()
	in.Remove()
	require.False(t, s.Active())
}

func TestFirstRuleThatStillAppliesDecides(t *testing.T) {
	var s Set
	s.Add(Any().Times(1).DropConnection())
	s.Add(Produce().Nth(2).Error(errcode.NotLeaderOrFollower))
	var got []Outcome
	for range 4 {
		got = append(got, s.Match(produceTo("t")))
	}
	require.True(t, got[0].Drop)
	require.True(t, got[1].IsZero())
	require.Equal(t, errcode.NotLeaderOrFollower, got[2].Code)
	require.True(t, got[3].IsZero())
}

func TestErrorIsForTheRulesTopics(t *testing.T) {
	var s Set
	s.Add(Produce().Topic("a").Error(errcode.NotEnoughReplicas))
	o := s.Match(produceTo("a", "b"))
	require.Equal(t, errcode.NotEnoughReplicas, o.For("a"))
	require.Equal(t, errcode.None, o.For("b"))
}

func TestAwaitReturnsWithTheHit(t *testing.T) {
	var s Set
	in := s.Add(Produce().Delay(time.Second))
	go s.Match(produceTo("a"))
	require.NoError(t, in.Await(t.Context(), 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, in.Await(ctx, 2), "1 of 2")
}

func TestRuleSaysItselfInWords(t *testing.T) {
	r := Produce().Topic("orders").Client("c").After(1).Times(2).Delay(time.Second).LoseResponse()
	require.Equal(t, `Produce topic orders client "c" after 1 times 2: delay 1s lose response`, r.String())
	require.Equal(t, "any request: error NOT_CONTROLLER", Any().Error(errcode.NotController).String())
}

func TestSelectorsNeedTheNameInTheRequest(t *testing.T) {
	named := func(ids ...string) func() []string { return func() []string { return ids } }
	p := Point{Key: wire.KeyTxnOffsetCommit, Topics: named("orders"), Groups: named("g"), TransactionalIDs: named("tx")}
	for rule, matches := range map[*Rule]bool{
		new(Any().Topic("orders").Group("g").TransactionalID("tx", "other")): true,
		new(Any().Group("h")):                                                    false,
		new(Any().TransactionalID("ty")):                                         false,
		new(Any().Except(wire.KeyTxnOffsetCommit)):                               false,
		new(On(wire.KeyEndTxn, wire.KeyTxnOffsetCommit)):                         true,
		new(On(wire.KeyEndTxn)):                                                  false,
		new(On(wire.KeyEndTxn, wire.KeyTxnOffsetCommit).Except(wire.KeyProduce)): true,
	} {
		require.Equal(t, matches, rule.matches(&p), rule.String())
	}
	require.False(t, new(Any().Group("g")).matches(&Point{Key: wire.KeyApiVersions}), "it names nobody")
}

func TestHooksGetTheRequest(t *testing.T) {
	var s Set
	var got []wire.Key
	s.Add(Any().OnArrival(func(p Point) { got = append(got, p.Key) }).OnAnswer(func(p Point) { got = append(got, -p.Key) }))
	o := s.Match(produceTo("a"))
	require.False(t, o.IsZero())
	o.Arrived()
	o.Answered()
	o = s.Match(Point{Key: wire.KeyFetch})
	o.Answered()
	require.Equal(t, []wire.Key{0, 0, -1}, got)
}

func TestLateRuleSaysItselfInWords(t *testing.T) {
	r := On(wire.KeyEndTxn, wire.KeyProduce).TransactionalID("tx").Except(wire.KeyFetch).OnArrival(func(Point) {}).OnAnswer(func(Point) {}).Late(time.Second)
	require.Equal(t, "EndTxn or Produce transactional id tx except Fetch: call on arrival call on answer drop connection, apply 1s later", r.String())
	var s Set
	s.Add(r)
	o := s.Match(Point{Key: wire.KeyEndTxn, TransactionalIDs: func() []string { return []string{"tx"} }})
	require.True(t, o.Late)
	require.Equal(t, time.Second, o.LateBy)
}
