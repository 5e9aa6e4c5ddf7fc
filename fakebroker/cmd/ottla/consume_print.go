package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/consumer"
)

// printer writes records in one of the forms.
type printer struct {
	w      *bufio.Writer
	form   string
	pieces []piece
	n      int64
}

// piece is a part of a format: text, or what a letter stands for.
type piece struct {
	text   string
	letter byte // 0: text
}

// defaultFormat prints values, a line each.
const defaultFormat = `%s\n`

func newPrinter(form, format string, w io.Writer) (*printer, error) {
	p := &printer{w: bufio.NewWriterSize(w, 1<<16), form: form}
	if format == "" {
		format = defaultFormat
	} else if form != "text" {
		return nil, fmt.Errorf("-f is for text, not for %s", form)
	}
	var err error
	p.pieces, err = parseFormat(format)
	return p, err
}

// parseFormat takes a format apart.
func parseFormat(s string) (pieces []piece, err error) {
	text := []byte{}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%' && i+1 < len(s) && strings.IndexByte("tpoTkshKS", s[i+1]) >= 0:
			i++
			pieces, text = append(pieces, piece{text: string(text)}, piece{letter: s[i]}), nil
		case s[i] == '%' && i+1 < len(s) && s[i+1] == '%':
			i++
			text = append(text, '%')
		case s[i] == '%':
			return nil, fmt.Errorf("-f: %q at %d: want %%t %%p %%o %%T %%k %%s %%h %%K %%S or %%%%", s[i:min(i+2, len(s))], i)
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				text = append(text, '\n')
			case 't':
				text = append(text, '\t')
			case 'r':
				text = append(text, '\r')
			case '0':
				text = append(text, 0)
			case '\\':
				text = append(text, '\\')
			case 'x':
				b, err := hex.DecodeString(s[min(i+1, len(s)):min(i+3, len(s))])
				if err != nil || len(b) != 1 {
					return nil, fmt.Errorf("-f: \\x at %d: want two hexadecimal digits", i-1)
				}
				text, i = append(text, b[0]), i+2
			default:
				return nil, fmt.Errorf("-f: \\%c at %d: want \\n \\t \\r \\0 \\xHH or \\\\", s[i], i-1)
			}
		default:
			text = append(text, s[i])
		}
	}
	return append(pieces, piece{text: string(text)}), nil
}

// record writes one record.
func (p *printer) record(r *consumer.Record) error {
	p.n++
	switch p.form {
	case "jsonl":
		p.w.Write(recordToJSON(r))
		return p.w.WriteByte('\n')
	case "json":
		if p.n == 1 {
			p.w.WriteString("[\n  ")
		} else {
			p.w.WriteString(",\n  ")
		}
		_, err := p.w.Write(recordToJSON(r))
		return err
	}
	var err error // of the last write: bufio's errors stay
	for _, piece := range p.pieces {
		if piece.letter == 0 {
			_, err = p.w.WriteString(piece.text)
		} else {
			_, err = p.w.Write(field(r, piece.letter))
		}
	}
	return err
}

// field is what a letter of a format stands for.
func field(r *consumer.Record, letter byte) []byte {
	switch letter {
	case 't':
		return []byte(r.Topic)
	case 'p':
		return strconv.AppendInt(nil, int64(r.Partition), 10)
	case 'o':
		return strconv.AppendInt(nil, r.Offset, 10)
	case 'T':
		return strconv.AppendInt(nil, r.TimestampMs, 10)
	case 'k':
		return r.Key
	case 's':
		return r.Value
	case 'K':
		return strconv.AppendInt(nil, size(r.Key), 10)
	case 'S':
		return strconv.AppendInt(nil, size(r.Value), 10)
	}
	var b []byte
	for name, value := range r.Headers.All() {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), '='), value...)
	}
	return b
}

// size is -1 for null, as kcat prints it.
func size(b []byte) int64 {
	if b == nil {
		return -1
	}
	return int64(len(b))
}

// flush hands on what is written so far.
func (p *printer) flush() error { return p.w.Flush() }

// end closes the array.
func (p *printer) end() error {
	if p.form == "json" {
		if p.n == 0 {
			p.w.WriteString("[")
		} else {
			p.w.WriteString("\n")
		}
		p.w.WriteString("]\n")
	}
	return p.w.Flush()
}
