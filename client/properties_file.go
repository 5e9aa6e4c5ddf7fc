package client

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ReadProperties reads a Java properties file, as java.util.Properties does, for FromProperties of producer and consumer
// and for Properties:
//
//	# or ! begins a comment
//	key = value      or key: value, or key value; blanks around the sign do not count, blanks at the end of the value do
//	key = one \
//	      two        a backslash at the end of a line goes on with the next, without its leading blanks
//	\t \n \r \f \uXXXX are what they are in Java; before anything else a backslash goes away
//
// The last value of a key wins. Text that is UTF-8 is read as such; Java takes every file for ISO-8859-1, and so does
// ReadProperties with one that is no UTF-8.
func ReadProperties(r io.Reader) (map[string]string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	properties := map[string]string{}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(decodeText(data)), "\n")
	for i := 0; i < len(lines); i++ {
		line, first := trimBlanks(lines[i]), i+1
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) {
			line = line[:len(line)-1]
			if i++; i == len(lines) {
				break
			}
			line += trimBlanks(lines[i])
		}
		raw, rest := splitProperty(line)
		key, keyErr := unescape(raw)
		value, valueErr := unescape(rest)
		if err := errors.Join(keyErr, valueErr); err != nil {
			return nil, fmt.Errorf("properties line %d: %w", first, err) // without its text, which may be a password
		}
		properties[key] = value
	}
	return properties, nil
}

// decodeText is UTF-8 or, failing that, ISO-8859-1, whose bytes are the first 256 characters.
func decodeText(data []byte) string {
	if utf8.Valid(data) {
		return strings.TrimPrefix(string(data), "\ufeff")
	}
	var b strings.Builder
	for _, c := range data {
		b.WriteRune(rune(c))
	}
	return b.String()
}

func trimBlanks(line string) string { return strings.TrimLeft(line, " \t\f") }

// continues tells whether a line ends in an odd number of backslashes: the last one is not itself escaped.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// splitProperty parts a line at the first sign or blank that is not escaped.
func splitProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = line[:end], trimBlanks(line[end:])
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = trimBlanks(value[1:])
	}
	return key, value
}

// unescape resolves backslashes. Java's \u are UTF-16 units, so two may make one character.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch c := s[i]; c {
		case 't', 'n', 'r', 'f':
			b.WriteByte(map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}[c])
		case 'u':
			unit, err := hexUnit(s[i+1:])
			if err != nil {
				return "", err
			}
			i += 4
			if utf16.IsSurrogate(unit) && strings.HasPrefix(s[i+1:], `\u`) {
				low, err := hexUnit(s[i+3:])
				if pair := utf16.DecodeRune(unit, low); err == nil && pair != utf8.RuneError {
					unit, i = pair, i+6
				}
			}
			b.WriteRune(unit)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// hexUnit is the four digits of a \u.
func hexUnit(s string) (rune, error) {
	if len(s) >= 4 {
		if n, err := strconv.ParseUint(s[:4], 16, 16); err == nil {
			return rune(n), nil
		}
	}
	return 0, errors.New(`\u must be followed by four hexadecimal digits`)
}
