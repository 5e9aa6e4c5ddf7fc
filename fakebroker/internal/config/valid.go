package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// validator is the "valid values" column as a check. The notation is what Apache Kafka prints:
//
//	[1,...]            at least 1
//	[1,...,9]          from 1 to 9
//	[1,...,9] or -1    the same, or exactly -1
//	[a, b, c]          one of these; for a LIST each element one of these
//	(case insensitive) [A, B]
//	non-empty string, non-null string, non-empty list
//
// check returns the reason why v is refused, "" when it is fine.
type validator interface {
	check(k *Key, v Value) string
}

type anything struct{}

func (anything) check(*Key, Value) string { return "" }

// between is a range of numbers; either end may be open, one more value may be allowed.
type between struct {
	min, max       float64
	hasMax, hasAlt bool
	alt            float64
}

func (b between) check(k *Key, v Value) string {
	if v.Null {
		if k.Default == nil {
			return "" // unset, and being unset is its default
		}
		return "Value must be non-null"
	}
	n := v.Double
	if k.Type != Double {
		n = float64(v.Int) // exact where it matters: limits are small or the ends of the type
	}
	switch {
	case b.hasAlt && n == b.alt:
		return ""
	case b.hasAlt && (n < b.min || n > b.max):
		return "Value must be between " + number(b.min) + " and " + number(b.max) + " or equal to " + number(b.alt)
	case n < b.min || math.IsNaN(n):
		return "Value must be at least " + number(b.min)
	case b.hasMax && n > b.max:
		return "Value must be no more than " + number(b.max)
	}
	return ""
}

func number(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// oneOf is a closed set of words.
type oneOf struct {
	words  []string
	folded bool // case does not matter
}

func (o oneOf) check(k *Key, v Value) string {
	if v.Null {
		return ""
	}
	if k.Type == List {
		return o.checkList(v)
	}
	for _, w := range o.words {
		if w == v.Text || o.folded && strings.EqualFold(w, v.Text) {
			return ""
		}
	}
	words := o.words
	how := ""
	if o.folded {
		how = " (case insensitive)"
	}
	return "String must be one of" + how + ": " + strings.Join(words, ", ")
}

func (o oneOf) checkList(v Value) string {
	for _, e := range v.List {
		if !slices.Contains(o.words, e) {
			return "String must be one of: " + strings.Join(o.words, ", ")
		}
	}
	return ""
}

// nonEmpty wants something in a string or list.
type nonEmpty struct{ nullToo bool }

func (n nonEmpty) check(k *Key, v Value) string {
	switch {
	case v.Null && n.nullToo:
		return "entry must be non null"
	case v.Null || n.nullToo:
		return ""
	case k.Type != List && v.Text == "":
		return "String must be non-empty"
	}
	return "" // "non-empty list" of the quorum configs: an empty default is what they have
}

// resetPolicy is share.auto.offset.reset: latest, earliest or by_duration with an ISO 8601 duration.
type resetPolicy struct{}

var isoDuration = regexp.MustCompile(`(?i)^P(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?$`)

func (resetPolicy) check(k *Key, v Value) string {
	d, timed := strings.CutPrefix(v.Text, "by_duration:")
	switch {
	case v.Text == "latest", v.Text == "earliest":
		return ""
	case timed && isoDuration.MatchString(d) && strings.ContainsAny(d, "0123456789") && !strings.HasSuffix(strings.ToUpper(d), "T"):
		return ""
	}
	return "Invalid value `" + v.Text + "` for configuration " + k.Name +
		". The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
}

// throttledReplicas is *, nothing, or a list of partition:broker.
type throttledReplicas struct{}

var throttledPair = regexp.MustCompile(`^[0-9]+:[0-9]+$`)

func (throttledReplicas) check(k *Key, v Value) string {
	if len(v.List) == 1 && strings.TrimSpace(v.List[0]) == "*" {
		return ""
	}
	for _, pair := range v.List {
		if !throttledPair.MatchString(strings.TrimSpace(pair)) {
			return k.Name + " must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
		}
	}
	return ""
}

var rangeText = regexp.MustCompile(`^\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?$`)

// parseValidator reads the notation above; a text it does not know is an error, so that no new rule goes unnoticed.
func parseValidator(text string) (validator, error) {
	switch text {
	case "":
		return anything{}, nil
	case "non-empty string", "non-empty list":
		return nonEmpty{}, nil
	case "non-null string":
		return nonEmpty{nullToo: true}, nil
	case "[latest, earliest, by_duration:PnDTnHnMn.nS]":
		return resetPolicy{}, nil
	case "[partitionId]:[brokerId],[partitionId]:[brokerId],...":
		return throttledReplicas{}, nil
	}
	if m := rangeText.FindStringSubmatch(text); m != nil {
		return parseRange(m)
	}
	words, folded := strings.CutPrefix(text, "(case insensitive) ")
	if strings.HasPrefix(words, "[") && strings.HasSuffix(words, "]") && !strings.Contains(words, "...") {
		return oneOf{words: strings.Split(strings.Trim(words, "[]"), ", "), folded: folded}, nil
	}
	return nil, fmt.Errorf("valid values %q: unknown notation", text)
}

func parseRange(m []string) (validator, error) {
	b := between{}
	var err error
	if b.min, err = strconv.ParseFloat(m[1], 64); err != nil {
		return nil, err
	}
	if m[2] != "" {
		b.hasMax = true
		if b.max, err = strconv.ParseFloat(m[2], 64); err != nil {
			return nil, err
		}
	}
	if m[3] != "" {
		b.hasAlt = true
		if b.alt, err = strconv.ParseFloat(m[3], 64); err != nil {
			return nil, err
		}
	}
	return b, nil
}
