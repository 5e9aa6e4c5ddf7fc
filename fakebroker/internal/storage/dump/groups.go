package dump

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// consumerProtocol is the protocol type of groups of consumers; what members of
// other groups put into their subscriptions nobody knows.
const consumerProtocol = "consumer"

// valueJSON prints the value of a coordinator's record. Subscriptions and
// assignments of consumers, which are bytes to the coordinator, are decoded,
// and the status of a transaction has its name.
func valueJSON(v logrecord.Record, version int16) ([]byte, error) {
	data, err := wirejson.Append(nil, v, version)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *logrecord.GroupMetadataValue:
		return inlineMembers(data, v), nil
	case *logrecord.TransactionLogValue:
		return bytes.Replace(data, fmt.Appendf(nil, `"transactionStatus":%d`, v.TransactionStatus),
			fmt.Appendf(nil, `"transactionStatus":"%s"`, transactionStatus(v.TransactionStatus)), 1), nil
	default:
		return data, nil
	}
}

var transactionStatuses = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

func transactionStatus(id int8) string {
	if id < 0 || int(id) >= len(transactionStatuses) {
		return fmt.Sprintf("unknown(%d)", id)
	}
	return transactionStatuses[id]
}

func inlineMembers(data []byte, group *logrecord.GroupMetadataValue) []byte {
	if group.ProtocolType != consumerProtocol {
		return data
	}
	s := string(data)
	for _, m := range group.Members {
		s = inline(s, "subscription", m.Subscription, message.NewConsumerProtocolSubscription())
		s = inline(s, "assignment", m.Assignment, message.NewConsumerProtocolAssignment())
	}
	return []byte(s)
}

// inline replaces the next base64 text of a field by what it decodes to. What
// does not decode stays.
func inline(s, field string, b []byte, m wire.Message) string {
	r := wire.NewReader(b)
	version := r.Int16()
	if len(b) < 2 || m.ReadFrom(r, version) != nil {
		return s
	}
	data, err := wirejson.Append(nil, m, version)
	if err != nil {
		return s
	}
	quoted := `"` + field + `":"` + base64.StdEncoding.EncodeToString(b) + `"`
	return strings.Replace(s, quoted, `"`+field+`":`+string(data), 1)
}
