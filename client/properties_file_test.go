package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
)

func TestPropertiesFilesAreReadAsJavaReadsThem(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                 {},
		"# a comment\n! another\n\n \t\n":  {},
		"a=b":                              {"a": "b"},
		"  a = b ":                         {"a": "b "},
		"a:b\nc d\ne\tf\ng":                {"a": "b", "c": "d", "e": "f", "g": ""},
		"a = = b":                          {"a": "= b"},
		"a=1\r\na=2\rb=3\n":                {"a": "2", "b": "3"},
		"a=one \\\n   two \\\r\n\tthree":   {"a": "one two three"},
		"a=b\\\\\nc=d":                     {"a": `b\`, "c": "d"},
		"a=b\\":                            {"a": "b"},
		"# not continued \\\na=b":          {"a": "b"},
		"a\\=b\\:c\\ d=e":                  {"a=b:c d": "e"},
		`a=\t\n\r\f\q\"\u00e9\ud83d\ude00`: {"a": "\t\n\r\fq\"é😀"},
		`a=\ud83dx`:                        {"a": "\ufffdx"},
		"a=é":                              {"a": "é"},
		"a=\xe9":                           {"a": "é"},
		"\ufeffa=b":                        {"a": "b"},
		"=b":                               {"": "b"},
	} {
		got, err := client.ReadProperties(strings.NewReader(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestBrokenPropertiesFilesSayWhere(t *testing.T) {
	_, err := client.ReadProperties(strings.NewReader("a=b\n\npassword=\\u12secret\n"))
	require.EqualError(t, err, `properties line 3: \u must be followed by four hexadecimal digits`)
	gone := errors.New("disk gone")
	_, err = client.ReadProperties(iotest.ErrReader(gone))
	require.ErrorIs(t, err, gone)
}

func FuzzReadProperties(f *testing.F) {
	f.Add("a=b\\\n c\\u0041:d\r!x")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := client.ReadProperties(strings.NewReader(text)); err == nil && len(p) > len(text) {
			t.Fatal("more keys than bytes")
		}
	})
}

// A file that a Java client uses configures this one.
func ExampleReadProperties() {
	file := strings.NewReader(`
# the same file as the Java service's
bootstrap.servers = broker1:9092, \
                    broker2:9092
security.protocol = SASL_SSL
sasl.mechanism    = PLAIN
sasl.jaas.config  = org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="wonder";
`)
	properties, err := client.ReadProperties(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(client.Properties(properties))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Config().Seeds, c.Config().Security)
	// Output: [broker1:9092 broker2:9092] SASL_SSL
}
