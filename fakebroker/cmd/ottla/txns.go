package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// txnsCmd are the commands about transactions; each has a file.
type txnsCmd struct {
	List     txnsListCmd     `cmd:"" aliases:"ls" help:"List transactional ids."`
	Describe txnsDescribeCmd `cmd:"" help:"Show the producer of transactional ids and what their open transaction has written to."`
	Hanging  txnsHangingCmd  `cmd:"" aliases:"find-hanging" help:"Find open transactions that no coordinator knows, so that nobody will end them."`
	Abort    txnsAbortCmd    `cmd:"" help:"Abort open transactions (shows the plan; --execute does it)."`
}

// searchFlags say where to look for hanging transactions.
type searchFlags struct {
	Topic      []string `placeholder:"NAME[:P,P...]" sep:"none" help:"Only these topics, or some partitions of them (may be repeated)."`
	Broker     *int32   `name:"broker-id" placeholder:"ID" help:"Only partitions with a replica there, as that broker knows them."`
	MaxTimeout string   `name:"max-transaction-timeout" aliases:"max-timeout" default:"15m" placeholder:"DURATION" help:"What was written to within that time is not looked at: transaction.max.timeout.ms of the brokers (default: 15m)."`
}

// search is where the flags say; its errors are usage errors.
func (f *searchFlags) search() (admin.HangingSearch, error) {
	most, err := parseDuration(f.MaxTimeout)
	if err != nil {
		return admin.HangingSearch{}, fmt.Errorf("--max-transaction-timeout: %w", err)
	}
	out := admin.HangingSearch{Broker: f.Broker, MaxTimeout: max(most, time.Nanosecond)}
	for _, arg := range f.Topic {
		parts, whole, err := topicOrPartitions(arg)
		if err != nil {
			return out, fmt.Errorf("--topic %s: %w", arg, err)
		}
		out.Partitions = append(out.Partitions, parts...)
		if whole != "" {
			out.Topics = append(out.Topics, whole)
		}
	}
	return out, nil
}

// topicOrPartitions reads NAME, which is a whole topic, or NAME:P,P...
func topicOrPartitions(arg string) (list []admin.TopicPartition, whole string, err error) {
	name, numbers, some := strings.Cut(arg, ":")
	if !some {
		return nil, name, nil
	}
	for n := range strings.SplitSeq(numbers, ",") {
		p, err := strconv.ParseInt(n, 10, 32)
		if err != nil || p < 0 {
			return nil, "", errors.New("want NAME or NAME:P,P..., such as orders:0,3")
		}
		list = append(list, admin.TopicPartition{Topic: name, Partition: int32(p)})
	}
	return list, "", nil
}

// hanging searches; topics that do not exist are told in the words of the other commands.
func (s *session) hanging(ctx context.Context, search admin.HangingSearch) ([]admin.HangingTransaction, error) {
	if b := search.Broker; b != nil { // no partition would have a replica there, so nothing would hang
		if err := s.brokerError(ctx, *b); err != nil {
			return nil, err
		}
	}
	rows, err := s.adm.HangingTransactions(ctx, search)
	if errors.Is(err, errcode.UnknownTopicOrPartition) {
		names := slices.Clone(search.Topics)
		for _, p := range search.Partitions {
			names = append(names, p.Topic)
		}
		topics, _ := s.adm.DescribeTopics(ctx, names...) // errors are in the rows
		if missing := s.topicErrors(ctx, topics); missing != nil {
			err = missing
		}
	}
	return rows, err
}

// brokerError tells that a broker does not exist.
func (s *session) brokerError(ctx context.Context, id int32) error {
	cluster, err := s.adm.DescribeCluster(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, b := range cluster.Brokers {
		if b.ID == id {
			return nil
		}
		ids = append(ids, fmt.Sprint(b.ID))
	}
	return fmt.Errorf("--broker-id %d: there is no such broker, the cluster has %s", id, strings.Join(ids, ", "))
}

// txnError is the error of a row about a transactional id.
func (s *session) txnError(ctx context.Context, id string, err error) error {
	if !errors.Is(err, errcode.TransactionalIdNotFound) {
		return err
	}
	rows, _ := s.adm.ListTransactions(ctx, admin.TransactionFilter{})
	var names []string
	for _, t := range rows {
		names = append(names, t.ID)
	}
	return &unknownName{"transactional id", id, nearest(id, names), "see 'ottla txns list'", err}
}

// describeTxns describes transactional ids; those that failed are in the error, the others in the rows.
func (s *session) describeTxns(ctx context.Context, ids []string) ([]admin.Transaction, error) {
	rows, _ := s.adm.DescribeTransactions(ctx, ids...) // errors are in the rows
	var errs []error
	good := rows[:0]
	for _, t := range rows {
		if t.Err != nil {
			errs = append(errs, s.txnError(ctx, t.ID, t.Err))
			continue
		}
		good = append(good, t)
	}
	return good, joinLines(unique(errs))
}

// instant is a time in UTC to the millisecond, nothing for none.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
