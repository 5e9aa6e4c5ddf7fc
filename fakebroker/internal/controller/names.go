package controller

import (
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// maxTopicName leaves room for "-<partition>" and the suffixes of folders within the 255 bytes of a file name.
const maxTopicName = 249

// metadataTopic is the quorum's own log; nobody may create it.
const metadataTopic = "__cluster_metadata"

// ValidateTopicName returns why a topic may not be called so, in Apache Kafka's words; "" for a valid name.
func ValidateTopicName(name string) string {
	const invalid = "Topic name is invalid: "
	switch {
	case name == "":
		return invalid + "the empty string is not allowed"
	case name == "." || name == "..":
		return invalid + "'" + name + "' is not allowed"
	case len(name) > maxTopicName:
		return invalid + "the length of '" + name + "' is longer than the max allowed length 249"
	case strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }):
		return invalid + "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	}
	return ""
}

func legal(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// checkNewName refuses names that are invalid or that differ from an existing topic's only in '.' and '_'. Names of the
// same request are not compared with each other: Apache Kafka creates both.
func checkNewName(i *image.Image, name string) apiError {
	if why := ValidateTopicName(name); why != "" {
		return refuse(errcode.InvalidTopicException, "%s", why)
	}
	if i.Topic(name) != nil {
		return refuse(errcode.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	if similar := i.Similar(name); len(similar) > 0 {
		return refuse(errcode.InvalidTopicException, "Topic '%s' collides with existing topic: %s", name, similar[len(similar)-1])
	}
	return apiError{}
}
