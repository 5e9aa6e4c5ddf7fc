package fakebroker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// Settings says what a cluster is to be. Options change it; the zero value of every field means what its comment says.
type Settings struct {
	// Properties are Apache Kafka's server properties by name. Unknown names and bad values are errors of New. Listeners,
	// log.dirs and process.roles come from the other fields.
	Properties map[string]string
	// Topics are made at the start, in this order; those that exist already stay as they are.
	Topics []TopicSpec
	// Dir is the log dir on disk. Empty: memory, gone with the cluster.
	Dir string
	// Listeners are where clients come in. Empty: one in memory, reached by DialContext.
	Listeners []Listener
	// TLS secures every listener that has no TLS of its own. Nil: plain.
	TLS *tls.Config
	// Users, when there are any, make every listener demand SASL/PLAIN.
	Users map[string]string
	// ClusterID is the id of a new cluster, 22 characters of base64. Empty: a random one. A Dir keeps the id that it has, and
	// refuses another.
	ClusterID string
	// Logger takes what the broker has to say. Nil: nothing with New, tb.Output() with Start.
	Logger *slog.Logger
	// Features are levels of features in a new cluster, by Kafka's names; the others have Apache Kafka 4.4's defaults. A Dir
	// keeps the levels that it has.
	Features map[string]int16
	// Bugs are mistakes that the broker makes on purpose, for this project's own tests: nobody else can name one.
	Bugs bug.Set
	// Disk gives the file system for each start of the broker, from the one it had before; nil before the first start. It is
	// for this project's own tests, which cut the power: nobody else can name one.
	Disk func(before vfs.FS) vfs.FS
}

// A TopicSpec is a topic to be made.
type TopicSpec struct {
	Name       string
	Partitions int
	Configs    map[string]string // topic configs by their Kafka names
}

// A Listener is one way in.
type Listener struct {
	// Name is Apache Kafka's listener name. Empty: the name of its security protocol, numbered if that is taken.
	Name string
	// Addr is host:port to bind; port 0 chooses one. Empty: in memory.
	Addr string
	// Advertised is host:port as told to clients. Empty: where it is bound.
	Advertised string
	// TLS secures this listener. Nil: Settings.TLS.
	TLS *tls.Config
	// Plain exempts the listener from Settings.TLS and Settings.Users.
	Plain bool
}

// An Option changes Settings. A function of one's own is one too:
//
//	fakebroker.New(func(s *fakebroker.Settings) { s.Properties["num.partitions"] = "3" })
type Option func(*Settings)

// Config sets one server property, such as message.max.bytes or num.partitions, by its Kafka name.
func Config(key, value string) Option {
	return func(s *Settings) { s.Properties[key] = value }
}

// NodeID sets node.id; the default is 1.
func NodeID(id int32) Option { return Config("node.id", strconv.Itoa(int(id))) }

// Topic has a topic made at the start, with one replica; one that a Dir has already stays as it is.
func Topic(name string, partitions int) Option {
	return TopicWith(TopicSpec{Name: name, Partitions: partitions})
}

// TopicWith has a topic with configs made at the start.
func TopicWith(t TopicSpec) Option {
	return func(s *Settings) { s.Topics = append(s.Topics, t) }
}

// Dir keeps the data in a folder on disk, in Apache Kafka's format; a cluster started there again has it all.
func Dir(path string) Option {
	return func(s *Settings) { s.Dir = path }
}

// Listen adds a TCP listener. Port 0 chooses a free port; Addrs says which.
func Listen(addr string) Option {
	return AddListener(Listener{Addr: addr})
}

// AddListener adds a listener. The first one is what Addrs and the metadata of its clients lead to.
func AddListener(l Listener) Option {
	return func(s *Settings) { s.Listeners = append(s.Listeners, l) }
}

// TLS secures the listeners, but for those that have a config of their own or are Plain. The config needs a certificate.
func TLS(cfg *tls.Config) Option {
	return func(s *Settings) { s.TLS = cfg }
}

// User adds a user for SASL/PLAIN, which every listener then demands, but for those that are Plain.
func User(name, secret string) Option {
	return func(s *Settings) { s.Users[name] = secret }
}

// ClusterID sets the id of a new cluster, 22 characters of base64; a Dir keeps the id that it has, and refuses another.
func ClusterID(id string) Option {
	return func(s *Settings) { s.ClusterID = id }
}

// Feature chooses the level that a feature has in a new cluster: Feature("transaction.version", 1) is a cluster before
// KIP-890, as clients meet it on brokers that were upgraded from Apache Kafka 3.
func Feature(name string, level int16) Option {
	return func(s *Settings) { s.Features[name] = level }
}

// Logger sends the broker's log to l.
func Logger(l *slog.Logger) Option {
	return func(s *Settings) { s.Logger = l }
}

// NewSettings returns settings with the options applied, and not yet checked.
func NewSettings(opts ...Option) *Settings {
	s := &Settings{Properties: make(map[string]string), Users: make(map[string]string), Features: make(map[string]int16)}
	for _, o := range opts {
		o(s)
	}
	return s
}

// String says the settings without their secrets.
func (s *Settings) String() string {
	where := s.Dir
	if where == "" {
		where = "memory"
	}
	return fmt.Sprintf("fakebroker: data in %s, %d listeners, TLS %t, %d users, %d topics, properties %v",
		where, len(s.Listeners), s.TLS != nil, len(s.Users), len(s.Topics), s.Properties)
}

// reserved are properties that other settings give.
var reserved = map[string]string{
	"log.dirs":                       "use Dir",
	"log.dir":                        "use Dir",
	"metadata.log.dir":               "the metadata log is in Dir",
	"listeners":                      "use Listen or AddListener",
	"advertised.listeners":           "use AddListener",
	"listener.security.protocol.map": "use TLS and User",
	"process.roles":                  "the node is broker and controller",
	"controller.listener.names":      "the controller is in the same process",
	"controller.quorum.voters":       "the controller is in the same process",
}

func (s *Settings) validate() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(reserved)) {
		if _, ok := s.Properties[key]; ok {
			errs = append(errs, fmt.Errorf("property %s cannot be set: %s", key, reserved[key]))
		}
	}
	if _, err := image.ChosenLevels(s.Features); err != nil {
		errs = append(errs, err)
	}
	named := make(map[string]bool)
	for _, t := range s.Topics {
		if t.Partitions < 1 {
			errs = append(errs, fmt.Errorf("topic %q: %d partitions, at least 1 is needed", t.Name, t.Partitions))
		}
		if named[t.Name] {
			errs = append(errs, fmt.Errorf("topic %q is there twice", t.Name))
		}
		named[t.Name] = true
	}
	if s.ClusterID != "" {
		if _, err := wire.ParseUUID(s.ClusterID); err != nil {
			errs = append(errs, fmt.Errorf("cluster id %q: want 22 characters of base64, such as MkU3OEVBNTcwNTJENDM2Qg: %w", s.ClusterID, err))
		}
	}
	if _, ok := s.Users[""]; ok {
		errs = append(errs, errors.New("a user has no name"))
	}
	return errors.Join(append(errs, s.validateListeners()...)...)
}

var listenerName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (s *Settings) validateListeners() (errs []error) {
	if !canServe(s.TLS) {
		errs = append(errs, errors.New("TLS: the config has no certificate"))
	}
	named := make(map[string]bool)
	for _, l := range s.Listeners {
		upper := strings.ToUpper(l.Name) // Apache Kafka's names have no case
		switch {
		case l.Name == "":
		case !listenerName.MatchString(l.Name):
			errs = append(errs, fmt.Errorf("listener %q: want a name of letters, digits, _ and -", l.Name))
		case upper == "CONTROLLER":
			errs = append(errs, fmt.Errorf("listener %q: that is the name of the controller's own", l.Name))
		case named[upper]:
			errs = append(errs, fmt.Errorf("listener %q is there twice", l.Name))
		}
		named[upper] = true
		if !canServe(l.TLS) {
			errs = append(errs, fmt.Errorf("listener %q: TLS: the config has no certificate", l.Name))
		}
	}
	return errs
}

// canServe reports whether a config has what a server needs; nil is no TLS.
func canServe(c *tls.Config) bool {
	return c == nil || len(c.Certificates) > 0 || c.GetCertificate != nil || c.GetConfigForClient != nil
}
