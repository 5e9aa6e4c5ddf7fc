package image

import (
	"encoding/base64"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// other keeps the records of rooms that have no coordinator in this broker yet (access control, SCRAM credentials,
// quotas, delegation tokens) as they are, under the identity of what they describe: so that a folder written by Apache
// Kafka keeps them through our checkpoints.
func (d *Delta) other(rec logrecord.Record) error {
	if d.others == nil {
		d.others = d.img.others.Edit()
	}
	set := func(key string) { d.others.Set(key, Record{rec, d.newestVersion(rec)}) }
	switch r := rec.(type) {
	case *logrecord.AccessControlEntryRecord:
		set("acl/" + r.Id.String())
	case *logrecord.RemoveAccessControlEntryRecord:
		d.others.Delete("acl/" + r.Id.String())
	case *logrecord.UserScramCredentialRecord:
		set(fmt.Sprintf("scram/%d/%s", r.Mechanism, r.Name))
	case *logrecord.RemoveUserScramCredentialRecord:
		d.others.Delete(fmt.Sprintf("scram/%d/%s", r.Mechanism, r.Name))
	case *logrecord.DelegationTokenRecord:
		set("token/" + r.TokenId)
	case *logrecord.RemoveDelegationTokenRecord:
		d.others.Delete("token/" + r.TokenId)
	case *logrecord.ClientQuotaRecord:
		if key := quotaKey(r); r.Remove {
			d.others.Delete(key)
		} else {
			set(key)
		}
	default:
		return fmt.Errorf("type %d is not applied", rec.APIKey())
	}
	return nil
}

func (d *Delta) newestVersion(rec logrecord.Record) int16 {
	_, newest := rec.Versions()
	return newest
}

// quotaKey names a quota by its entity and key. Parts are encoded, since names may contain any character.
func quotaKey(r *logrecord.ClientQuotaRecord) string {
	key := "quota/" + r.Key
	for _, e := range r.Entity {
		name := "(default)"
		if e.EntityName != nil {
			name = base64.RawURLEncoding.EncodeToString([]byte(*e.EntityName))
		}
		key += "/" + e.EntityType + "=" + name
	}
	return key
}
