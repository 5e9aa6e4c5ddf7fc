package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ottla-kafka/ottla/client/sasl"
)

// plainModule is Kafka's login module for PLAIN.
const plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule"

// applyMechanism sets sasl.mechanism. The credentials come by sasl.jaas.config, in either order.
func applyMechanism(c *Config, value string) error {
	switch strings.ToUpper(value) {
	case "PLAIN":
		if c.SASL == nil || c.SASL.Name() != "PLAIN" {
			c.SASL, c.noLogin = sasl.PlainUser("", Secret{}), true
		}
		return nil
	case "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER":
		return errors.New("is not built yet; PLAIN is, and client.SASL takes any sasl.Mechanism")
	}
	return errors.New("is not a mechanism of Kafka; PLAIN is supported")
}

// applyJAAS sets the credentials from sasl.jaas.config. No error repeats the text: it holds the password.
func applyJAAS(c *Config, value string) error {
	module, options, err := parseJAAS(value)
	if err != nil {
		return err
	}
	if module != plainModule {
		return fmt.Errorf("login module %s is not built yet; %s is", module, plainModule)
	}
	user, password := options["username"], options["password"]
	if user == "" || password == "" {
		return errors.New("PlainLoginModule needs username=\"...\" and password=\"...\"")
	}
	c.SASL, c.noLogin = sasl.PlainUser(user, sasl.NewSecret(password)), false
	return nil
}

// parseJAAS reads one entry of a JAAS configuration:
//
//	loginModuleClass controlFlag (optionName=optionValue)*;
//
// Values are quoted with either quote or bare; a backslash takes the next character as it is.
func parseJAAS(text string) (module string, options map[string]string, err error) {
	words, err := jaasWords(text)
	if err != nil {
		return "", nil, err
	}
	if len(words) == 0 || words[len(words)-1] != ";" {
		return "", nil, errors.New("must end with a semicolon")
	}
	words = words[:len(words)-1]
	if len(words) < 2 {
		return "", nil, errors.New("must be: LoginModuleClass required option=\"value\" ...;")
	}
	switch strings.ToLower(words[1]) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return "", nil, errors.New("the second word must be the control flag: required, requisite, sufficient or optional")
	}
	module, words = words[0], words[2:]
	options = make(map[string]string)
	for len(words) > 0 {
		if len(words) < 3 || words[1] != "=" {
			return "", nil, errors.New("each option must be name=\"value\"")
		}
		options[words[0]] = words[2]
		words = words[3:]
	}
	return module, options, nil
}

// jaasWords splits into words, "=" and ";". After the first semicolon nothing may follow.
func jaasWords(text string) ([]string, error) {
	var words []string
	for i := 0; i < len(text); {
		switch ch := text[i]; {
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			i++
		case ch == '=':
			words = append(words, "=")
			i++
		case ch == ';':
			if strings.TrimSpace(text[i+1:]) != "" {
				return nil, errors.New("must hold one login module only")
			}
			return append(words, ";"), nil
		case ch == '"' || ch == '\'':
			word, n, err := quotedWord(text[i+1:], ch)
			if err != nil {
				return nil, err
			}
			words = append(words, word)
			i += n + 1
		default:
			n := strings.IndexAny(text[i:], " \t\r\n=;")
			if n < 0 {
				n = len(text) - i
			}
			words = append(words, text[i:i+n])
			i += n
		}
	}
	return words, nil
}

// quotedWord reads up to the closing quote and tells how many bytes that took.
func quotedWord(text string, quote byte) (word string, n int, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case text[i] == quote:
			return b.String(), i + 1, nil
		default:
			b.WriteByte(text[i])
		}
	}
	return "", 0, errors.New("has a quote that is not closed")
}
