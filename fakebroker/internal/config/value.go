package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is a parsed config value: which field counts depends on the key's type. A null value has Null set.
type Value struct {
	Null   bool
	Bool   bool
	Int    int64 // INT, SHORT, LONG
	Double float64
	Text   string   // STRING, CLASS, PASSWORD
	List   []string // LIST
}

// InvalidValueError is a value that its config does not take. Its text is Apache Kafka's: clients show it to people.
type InvalidValueError struct {
	Key    string
	Value  string // redacted for passwords
	Reason string
}

// Error is Apache Kafka's text.
func (e *InvalidValueError) Error() string {
	msg := "Invalid value " + e.Value + " for configuration " + e.Key
	if e.Reason != "" {
		msg += ": " + e.Reason
	}
	return msg
}

// UnknownKeyError is a config name that no definition has.
type UnknownKeyError struct {
	Kind, Key string
	Suggest   string // the name it probably should have been, "" when none is near
}

// Error names the key, and the one that was probably meant.
func (e *UnknownKeyError) Error() string {
	msg := fmt.Sprintf("Unknown %s config name: %s", e.Kind, e.Key)
	if e.Suggest != "" {
		msg += " (did you mean " + e.Suggest + "?)"
	}
	return msg
}

// Parse reads text as a value of k and checks it against the valid values. nil is null: valid unless k says otherwise.
func (k *Key) Parse(text *string) (Value, error) {
	if text == nil {
		v := Value{Null: true}
		if reason := k.valid.check(k, v); reason != "" {
			return v, k.invalid("null", reason)
		}
		return v, nil
	}
	v, reason := parseAs(k.Type, strings.TrimFunc(*text, javaSpace))
	if reason == "" {
		reason = k.valid.check(k, v)
	}
	if reason != "" {
		shown := *text
		if _, ok := k.valid.(throttledReplicas); ok { // the one check of Apache Kafka's that prints the parsed list
			shown = "[" + strings.Join(v.List, ", ") + "]"
		}
		return v, k.invalid(shown, reason)
	}
	return v, nil
}

func (k *Key) invalid(value, reason string) error {
	if k.Sensitive() {
		value = "[hidden]"
	}
	return &InvalidValueError{Key: k.Name, Value: value, Reason: reason}
}

// javaSpace is what String.trim() removes: everything up to U+0020.
func javaSpace(r rune) bool { return r <= ' ' }

func parseAs(t Type, s string) (v Value, reason string) {
	switch t {
	case Boolean:
		switch {
		case strings.EqualFold(s, "true"):
			v.Bool = true
		case !strings.EqualFold(s, "false"):
			return v, "Expected value to be either true or false"
		}
	case Int:
		return parseInteger(t, s, 32)
	case Short:
		return parseInteger(t, s, 16)
	case Long:
		return parseInteger(t, s, 64)
	case Double:
		f, ok := parseDouble(s)
		if !ok {
			return v, "Not a number of type DOUBLE"
		}
		v.Double = f
	case List:
		v.List = SplitList(s)
	default:
		v.Text = s
	}
	return v, ""
}

// parseInteger is Integer.parseInt and its kin: an optional sign and decimal digits, no underscores.
func parseInteger(t Type, s string, bits int) (v Value, reason string) {
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if len(s)-len(digits) <= 1 && digits != "" && strings.Trim(digits, "0123456789") == "" {
		if n, err := strconv.ParseInt(s, 10, bits); err == nil {
			v.Int = n
			return v, ""
		}
	}
	return v, "Not a number of type " + t.String()
}

// parseDouble is Double.parseDouble: Go's syntax without its underscores and short names, plus a trailing d or f.
func parseDouble(s string) (float64, bool) {
	switch strings.TrimLeft(s, "+-") {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		if strings.HasPrefix(s, "-") {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	}
	if len(s) > 1 && strings.ContainsRune("dDfF", rune(s[len(s)-1])) && !strings.ContainsAny(s, "xX") {
		s = s[:len(s)-1]
	}
	if strings.ContainsAny(s, "_") || strings.ContainsAny(s, "nN") { // inf and nan are words of Go's alone
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) { // Java rounds what is out of range to infinity
		return 0, false
	}
	return f, true
}

// SplitList splits a LIST as Apache Kafka does: at commas, with the space around them dropped. "" is the empty list.
func SplitList(s string) []string {
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i, p := range parts {
		if i > 0 {
			p = strings.TrimLeft(p, " \t\n\v\f\r")
		}
		if i < len(parts)-1 {
			p = strings.TrimRight(p, " \t\n\v\f\r")
		}
		parts[i] = p
	}
	return parts
}

// Format writes v as Apache Kafka prints a parsed value of type t: what DescribeConfigs answers. nil is null.
func (v Value) Format(t Type) *string {
	if v.Null {
		return nil
	}
	var s string
	switch t {
	case Boolean:
		s = strconv.FormatBool(v.Bool)
	case Int, Short, Long:
		s = strconv.FormatInt(v.Int, 10)
	case Double:
		s = formatDouble(v.Double)
	case List:
		s = strings.Join(v.List, ",")
	case Password:
		s = "[hidden]"
	default:
		s = v.Text
	}
	return &s
}

// formatDouble is Double.toString: plain between 1e-3 and 1e7, else d.dddE±x, always with a digit after the point.
func formatDouble(f float64) string {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.Replace(strconv.FormatFloat(f, 'g', -1, 64), "Inf", "Infinity", 1)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	x, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(x)
}
