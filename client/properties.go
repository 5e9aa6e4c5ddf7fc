package client

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Property maps one of Kafka's configuration keys to a field of C, or says why it is not mapped.
type Property[C any] struct {
	Key string
	// Default is Kafka's default as its own documentation prints it.
	Default string
	// Doc says in a few words what the key does here.
	Doc string
	// Differs says why our default is another than Kafka's; empty when it is the same.
	Differs string
	// Apply sets the field from the property's text. nil together with Refuse.
	Apply func(c *C, value string) error
	// Refuse says why the key is not mapped and what to use instead. Setting a refused key is an error, unless
	// the value is Kafka's default or one of Accept, which ask for nothing.
	Refuse string
	// Accept lists further values of a refused key that are harmless here.
	Accept []string
}

// PropertyTable lists the keys one kind of configuration understands. Tables of several kinds are used together
// by LoadProperties.
type PropertyTable[C any] []Property[C]

// Lookup finds a key.
func (t PropertyTable[C]) Lookup(key string) (Property[C], bool) {
	for _, p := range t {
		if p.Key == key {
			return p, true
		}
	}
	return Property[C]{}, false
}

// Bind ties the table to the configuration its keys are to be written to.
func (t PropertyTable[C]) Bind(c *C) PropertyBinding { return binding[C]{t, c} }

// PropertyBinding is a table with its target; PropertyTable.Bind makes one.
type PropertyBinding interface {
	keys() []string
	apply(key, value string) (known bool, err error)
}

type binding[C any] struct {
	table  PropertyTable[C]
	target *C
}

func (b binding[C]) keys() []string {
	out := make([]string, len(b.table))
	for i, p := range b.table {
		out[i] = p.Key
	}
	return out
}

func (b binding[C]) apply(key, value string) (bool, error) {
	p, ok := b.table.Lookup(key)
	if !ok {
		return false, nil
	}
	if p.Apply != nil {
		return true, p.Apply(b.target, strings.TrimSpace(value))
	}
	if p.Default == "(null)" && strings.TrimSpace(value) == "" {
		return true, nil
	}
	for _, fine := range append([]string{p.Default}, p.Accept...) {
		if strings.EqualFold(strings.TrimSpace(value), fine) {
			return true, nil
		}
	}
	return true, &FieldError{Key: key, Value: shown(key, value), Reason: p.Refuse}
}

// LoadProperties writes Java properties to the bound configurations. A key that several tables know goes to
// each; a key that none knows is an error that names the nearest one. Every key is tried; the error is
// errors.Join of *FieldError.
func LoadProperties(properties map[string]string, bindings ...PropertyBinding) error {
	keys := make([]string, 0, len(properties))
	for key := range properties {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var errs []error
	for _, key := range keys {
		known := false
		for _, b := range bindings {
			ok, err := b.apply(key, properties[key])
			known = known || ok
			if err != nil {
				errs = append(errs, fieldError(key, properties[key], err))
			}
		}
		if !known {
			errs = append(errs, &FieldError{Key: key, Reason: unknownKey(key, bindings)})
		}
	}
	return errors.Join(errs...)
}

func fieldError(key, value string, err error) error {
	var fe *FieldError
	if errors.As(err, &fe) {
		return err
	}
	return &FieldError{Key: key, Value: shown(key, value), Reason: err.Error()}
}

// shown is a value as an error may print it: what can hold a secret does not show.
func shown(key, value string) string {
	for _, word := range []string{"password", "secret", "jaas", "keystore.key", "keystore.certificate", "passphrase"} {
		if strings.Contains(key, word) {
			return "[redacted]"
		}
	}
	if len(value) > 100 {
		return value[:100] + "..."
	}
	return value
}

func unknownKey(key string, bindings []PropertyBinding) string {
	best, distance := "", len(key)/3+2
	for _, b := range bindings {
		for _, candidate := range b.keys() {
			if d := editDistance(key, candidate); d < distance {
				best, distance = candidate, d
			}
		}
	}
	if best == "" {
		return "is not a configuration key of this client"
	}
	return fmt.Sprintf("is not a configuration key of this client; did you mean %s?", best)
}

// editDistance is Levenshtein's, with dots, dashes and underscores taken as the same.
func editDistance(a, b string) int {
	same := strings.NewReplacer("_", ".", "-", ".")
	a, b = same.Replace(strings.ToLower(a)), same.Replace(strings.ToLower(b))
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
