package machine

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// OffsetJob is one call for offsets to become part of the transaction. The driver fills it and reads Err when it is in
// Effects.Done.
type OffsetJob struct {
	Group      string
	MemberID   string // empty: no check of the generation
	InstanceID string
	Generation int32
	Offsets    []PartitionOffset
	// Owner is for the driver.
	Owner any

	// Err is why it came to nothing. Stale says that the group does not know the generation any more: the transaction
	// is not doomed by that, so the owner may ask his member again and give another job.
	Err   error
	Stale bool
}

// PartitionOffset is the offset of one partition.
type PartitionOffset struct {
	client.TopicPartition
	Offset   int64
	Epoch    int32
	Metadata string
}

func (m *Machine) offsetsGiven(job *OffsetJob) {
	switch {
	case m.state == Doomed:
		m.done(job, m.tx.doom)
	case m.state == Over:
		m.done(job, m.err)
	case m.state != InTransaction && (m.state != Committing || m.tx.allowed):
		m.done(job, errNoTransaction)
	case len(job.Offsets) == 0:
		m.done(job, nil)
	default:
		m.jobs = append(m.jobs, job)
		m.nextGroup()
	}
}

var errNoTransaction = &Error{Err: errcode.InvalidTxnState, Hint: "no transaction is open"}

func (m *Machine) done(job *OffsetJob, err error) {
	job.Err = err
	m.eff.Done = append(m.eff.Done, job)
}

// nextGroup turns the group slot to the first job.
func (m *Machine) nextGroup() {
	if len(m.jobs) == 0 {
		return
	}
	if who := (Coordinator{client.GroupCoordinator, m.jobs[0].Group}); m.group.who != who {
		m.group = slot{who: who, broker: -1}
	}
}

func (m *Machine) dropJobs(err error) {
	for _, j := range m.jobs {
		m.done(j, err)
	}
	m.jobs = nil
}

func (m *Machine) endJob(job *OffsetJob, err error) {
	i := slices.Index(m.jobs, job)
	if i < 0 {
		return
	}
	m.jobs = slices.Delete(m.jobs, i, i+1)
	m.done(job, err)
	m.nextGroup()
}

// offsetsRecalled: nobody knows whether the offsets are part of the transaction.
func (m *Machine) offsetsRecalled(now time.Time, job *OffsetJob, err error) {
	if !slices.Contains(m.jobs, job) {
		return
	}
	if m.group.air != nil && m.group.air.job == job {
		m.stray(true)
	}
	m.doom(err)
}

// nextForGroup is what the group's coordinator has to be asked next.
func (m *Machine) nextForGroup(now time.Time) *Request {
	if len(m.jobs) == 0 || m.tx.fence != nil || m.state != InTransaction && m.state != Committing {
		return nil
	}
	job := m.jobs[0]
	if !m.implicit && !m.tx.groups[job.Group] {
		return nil
	}
	req := message.NewTxnOffsetCommitRequest()
	req.TransactionalId, req.GroupId, req.ProducerId, req.ProducerEpoch = m.cfg.ID, job.Group, m.producerID, m.epoch
	r := &Request{api: commitOffsets, Body: req, job: job, MaxVersion: implicitOffsetCommit - 1}
	if m.implicit {
		r.MinVersion, r.MaxVersion = implicitOffsetCommit, namedOffsetCommit
	}
	if job.MemberID != "" {
		req.MemberId, req.GenerationIdOrMemberEpoch = job.MemberID, job.Generation
		if job.InstanceID != "" {
			req.GroupInstanceId = &job.InstanceID
		}
		r.MinVersion = max(r.MinVersion, FencingOffsetCommit)
	}
	at := map[string]int{}
	for i := range job.Offsets {
		o := &job.Offsets[i]
		k, ok := at[o.Topic]
		if !ok {
			k = len(req.Topics)
			at[o.Topic] = k
			req.Topics = append(req.Topics, message.TxnOffsetCommitRequestTopic{Name: o.Topic})
		}
		req.Topics[k].Partitions = append(req.Topics[k].Partitions, message.TxnOffsetCommitRequestPartition{
			PartitionIndex: o.Partition, CommittedOffset: o.Offset, CommittedLeaderEpoch: o.Epoch, CommittedMetadata: &o.Metadata})
	}
	return r
}

// offsetsAnswered: the group's coordinator said something about each partition. What it took is done; for the rest the
// worst verdict counts.
func (m *Machine) offsetsAnswered(now time.Time, e *Answered, resp *message.TxnOffsetCommitResponse) {
	job := e.Request.job
	worst, code := fine, errcode.None
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for _, p := range t.Partitions {
			c := errcode.Code(p.ErrorCode)
			v := judge(commitOffsets, c)
			if v == fine {
				tp := client.TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}
				job.Offsets = slices.DeleteFunc(job.Offsets, func(o PartitionOffset) bool { return o.TopicPartition == tp })
			}
			if v > worst {
				worst, code = v, c
			}
		}
	}
	if worst == fine && len(job.Offsets) > 0 {
		m.later(now, &m.group, again) // the answer left some out
		return
	}
	switch worst {
	case fine:
		m.group.reset()
		m.reached(now, true)
		m.endJob(job, nil)
	case stale:
		m.group.reset()
		job.Stale = true
		m.endJob(job, &Error{Request: apiNames[commitOffsets], Broker: e.Broker, Hint: hints[code], Err: code})
	default:
		m.refused(now, &m.group, worst, code, e)
	}
}
