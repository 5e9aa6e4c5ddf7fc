package controller

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Upgrade types of UpdateFeatures.
const (
	upgradeOnly     int8 = 1
	safeDowngrade   int8 = 2
	unsafeDowngrade int8 = 3
)

// updateFeatures changes finalised levels: all or none. Since version 2 an error stands at the top only, with the text
// of the first feature that failed.
func (c *Controller) updateFeatures(v View, r *message.UpdateFeaturesRequest) Result {
	resp := &message.UpdateFeaturesResponse{}
	var records []image.Record
	for i := range r.FeatureUpdates {
		u := &r.FeatureUpdates[i]
		if err := c.checkFeature(v.Image, u); err.failed() {
			text := "The update failed for all features since the following feature had an error: " + *err.message
			resp.ErrorCode, resp.ErrorMessage = int16(err.code), &text
			return Result{Response: resp}
		}
		if v.Image.Feature(u.Feature) != u.MaxVersionLevel {
			records = append(records, image.Record{Record: &logrecord.FeatureLevelRecord{Name: u.Feature, FeatureLevel: u.MaxVersionLevel}})
		}
	}
	if r.ValidateOnly {
		records = nil
	}
	for i := range r.FeatureUpdates { // versions before 2 list what went well, with the name of the error that there is not
		resp.Results = append(resp.Results, message.UpdatableFeatureResult{Feature: r.FeatureUpdates[i].Feature, ErrorMessage: new("NONE")})
	}
	return Result{Records: records, Response: resp}
}

func (c *Controller) checkFeature(i *image.Image, u *message.FeatureUpdateKey) apiError {
	bad := func(format string, args ...any) apiError {
		args = append([]any{u.MaxVersionLevel, u.Feature}, args...)
		return refuse(errcode.InvalidUpdateVersion, "Invalid update version %d for feature %s. "+format, args...)
	}
	kind := u.UpgradeType
	if kind == 0 && u.AllowDowngrade {
		kind = safeDowngrade
	} else if kind == 0 {
		kind = upgradeOnly
	}
	if kind < upgradeOnly || kind > unsafeDowngrade {
		return bad("The controller does not support the given upgrade type.")
	}
	supported := image.SupportedFeatures()
	at := slices.IndexFunc(supported, func(f image.FeatureRange) bool { return f.Name == u.Feature })
	if at < 0 {
		return bad("Local controller %d does not support this feature.", c.opts.NodeID)
	}
	if u.MaxVersionLevel < 0 {
		return bad("A feature version cannot be less than 0.")
	}
	if f := supported[at]; u.MaxVersionLevel < f.Min || u.MaxVersionLevel > f.Max {
		return bad("Local controller %d only supports versions %d-%d", c.opts.NodeID, f.Min, f.Max)
	}
	if u.Feature == image.KRaftFeature {
		return bad("Can't change the version of this feature while the quorum has one voter.")
	}
	return checkDowngrade(i, u, kind, bad)
}

func checkDowngrade(i *image.Image, u *message.FeatureUpdateKey, kind int8, bad func(string, ...any) apiError) apiError {
	switch now := i.Feature(u.Feature); {
	case u.MaxVersionLevel < now && kind == upgradeOnly:
		return bad("Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.")
	case u.MaxVersionLevel > now && kind != upgradeOnly:
		return bad("Can't downgrade to a newer version.")
	case u.MaxVersionLevel < now && u.Feature == image.MetadataFeature:
		why := "Refusing to perform the requested downgrade because it might delete metadata information."
		if kind == unsafeDowngrade {
			why = "Unsafe metadata downgrade is not supported in this version."
		}
		return refuse(errcode.InvalidUpdateVersion, "Unsupported metadata.version downgrade from %d to %d. %s", now, u.MaxVersionLevel, why)
	}
	return apiError{}
}
