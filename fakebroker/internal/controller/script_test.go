package controller

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestScripts runs the stories in testdata: each line that starts with a letter is a request, the lines behind it are
// the answer and the records that it proposed, which then are applied. OTTLA_UPDATE=1 go test writes them anew.
//
//	cluster brokers=3 racks=a,b,c [prop key=value]   a new cluster with active brokers
//	create NAME partitions=3 rf=1 [assign=1,2;2,3] [key=value ...] [validate]   (several: separated by +)
//	delete NAME ...    grow NAME count=5 [assign=1;2]
//	set|del|append|subtract TYPE NAME key=value ...    replace TYPE NAME key=value ...
//	fence|unfence|stop|clean|unclean|unregister BROKER    ids BROKER    feature NAME LEVEL [safe|unsafe]
//	show TOPIC
func TestScripts(t *testing.T) { wiretest.Stories(t, runScript) }

type script struct {
	t      *testing.T
	c      *Controller
	img    *image.Image
	offset int64
	ids    uint64
	out    strings.Builder
}

func runScript(t *testing.T, text string) string {
	s := &script{t: t}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "  ") {
			continue // what it printed last time
		}
		s.out.WriteString(line + "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			s.line(strings.Fields(line))
		}
	}
	return s.out.String()
}

func (s *script) uuid() (u wire.UUID) {
	s.ids++
	binary.BigEndian.PutUint64(u[8:], 0xf00+s.ids)
	return u
}

func (s *script) line(words []string) {
	if words[0] == "cluster" {
		s.cluster(words[1:])
		return
	}
	if words[0] == "show" {
		for _, p := range s.img.Topic(words[1]).Partitions {
			fmt.Fprintf(&s.out, "  %s\n", s.print(reflect.ValueOf(*p)))
		}
		return
	}
	req := s.request(words[0], words[1:])
	r, err := s.c.Handle(time.Time{}, View{s.img, s.offset}, req)
	require.NoError(s.t, err)
	s.response(reflect.ValueOf(r.Response).Elem())
	s.apply(r.Records, true)
}

func (s *script) apply(records []image.Record, print bool) {
	d := image.NewDelta(s.img)
	for _, rec := range records {
		if print {
			fmt.Fprintf(&s.out, "  + %s%s v%d\n", reflect.TypeOf(rec.Record).Elem().Name(), s.print(reflect.ValueOf(rec.Record).Elem()), rec.Version)
		}
		require.NoError(s.t, d.Apply(s.offset, 1, rec))
		s.offset++
	}
	s.img = d.Image()
}

// cluster bootstraps a cluster whose brokers are all active.
func (s *script) cluster(args []string) {
	properties := make(map[string]string)
	brokers, racks := 1, []string(nil)
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "brokers":
			brokers, _ = strconv.Atoi(value)
		case "racks":
			racks = strings.Split(value, ",")
		default:
			properties[key] = value
		}
	}
	layers, err := config.NewLayers(properties)
	require.NoError(s.t, err)
	s.c = New(Options{NodeID: 1, Config: layers, NewUUID: s.uuid, Rand: func(int) int { return 0 }})
	s.img, s.offset = image.Empty(), 0
	s.apply(s.c.Bootstrap(image.DefaultLevels()), false)
	for id := 1; id <= brokers; id++ {
		reg := s.registration(int32(id), -1)
		if racks != nil {
			reg.Rack = &racks[id-1]
		}
		r, err := s.c.Handle(time.Time{}, View{s.img, s.offset}, reg)
		require.NoError(s.t, err)
		s.apply(r.Records, false)
		s.apply(s.must(s.beat(int32(id))).Records, false)
	}
}

func (s *script) must(req message.Request) Result {
	r, err := s.c.Handle(time.Time{}, View{s.img, s.offset}, req)
	require.NoError(s.t, err)
	return r
}

func (s *script) registration(id int32, previous int64) *message.BrokerRegistrationRequest {
	r := message.NewBrokerRegistrationRequest()
	r.BrokerId, r.IncarnationId, r.PreviousBrokerEpoch = id, s.uuid(), previous
	r.Rack = nil
	r.LogDirs = []wire.UUID{{14: 0xd, 15: byte(id)}}
	for _, f := range image.SupportedFeatures() {
		r.Features = append(r.Features, message.BrokerRegistrationRequestFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	return r
}

func (s *script) beat(id int32) *message.BrokerHeartbeatRequest {
	r := message.NewBrokerHeartbeatRequest()
	r.BrokerId, r.BrokerEpoch, r.CurrentMetadataOffset = id, s.img.Broker(id).Epoch, s.offset
	return r
}

// response prints codes and texts, one line per element of the answer's array.
func (s *script) response(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct && v.Type().Field(i).Name != "UnknownTags" {
			for k := range f.Len() {
				fmt.Fprintf(&s.out, "  = %s\n", s.answer(f.Index(k)))
			}
			if f.Len() > 0 {
				return
			}
		}
	}
	fmt.Fprintf(&s.out, "  = %s\n", s.answer(v))
}

func (s *script) answer(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case name == "ErrorCode":
			parts = append(parts, errcode.Code(f.Int()).Name())
		case name == "UnknownTags" || name == "Configs" || name == "TopicConfigErrorCode" || name == "ResourceType" || f.IsZero():
		default:
			parts = append(parts, name+":"+s.value(f))
		}
	}
	return strings.Join(parts, " ")
}

// print lists the fields that are not zero, null or empty.
func (s *script) print(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}
		parts = append(parts, v.Type().Field(i).Name+":"+s.value(f))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func (s *script) value(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case wire.UUID:
		return fmt.Sprintf("#%x", binary.BigEndian.Uint64(x[8:]))
	case []wire.UUID:
		var ids []string
		for _, u := range x {
			ids = append(ids, fmt.Sprintf("#%x", binary.BigEndian.Uint64(u[8:])))
		}
		return fmt.Sprint(ids)
	case *string:
		return strconv.Quote(*x)
	}
	if v.Kind() == reflect.Slice && v.Len() > 0 && v.Index(0).Kind() == reflect.Struct {
		return fmt.Sprintf("(%d)", v.Len())
	}
	return fmt.Sprint(v.Interface())
}
