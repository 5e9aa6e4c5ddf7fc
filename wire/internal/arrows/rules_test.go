package arrows

// rooms are the top-level folders of Go code and the rooms that each may import besides itself. Arrows point down:
// wire <- client <- producer, groupmember, admin <- consumer <- txn. The broker sees wire alone, so that a mistake in the
// client cannot hide in code that both share.
var rooms = map[string][]string{
	"wire":        {},
	"client":      {"wire"},
	"producer":    {"wire", "client"},
	"groupmember": {"wire", "client"},
	"admin":       {"wire", "client"},
	"consumer":    {"wire", "client", "producer", "groupmember", "admin"},
	"txn":         {"wire", "client", "producer", "groupmember", "admin", "consumer"},
	"fakebroker":  {"wire"},
	"examples":    {"wire", "client", "producer", "groupmember", "admin", "consumer", "txn", "fakebroker"},
}

// free are folders that may import any room.
var free = []string{"fakebroker/cmd", "fakebroker/harness", "examples"}

// floors are the packages below fakebroker/internal by height: each may import those of lower floors only, and what lies
// below its own folder.
var floors = [][]string{
	{"vfs", "timeline", "record", "purgatory", "quota", "config", "bug"},
	{"storage", "image", "raft", "coordinator", "network"},
	{"controller", "group", "transaction", "share", "security", "replica"},
	{"server"},
	{"sim"},
}

// never are arrows that the floors would allow and the design does not: coordinators write through what the runtime
// hands them, and raft replicates records that it cannot read.
var never = map[string][]string{
	"group":       {"storage"},
	"transaction": {"storage"},
	"share":       {"storage"},
}

// vocabulary are public packages of the broker that its inside may import too: fault rules are written by tests and
// carried out by server. They import no other package of the broker.
var vocabulary = []string{"fakebroker/fault", "fakebroker/history"}

// topLevel is everything that the root folder may hold.
var topLevel = []string{"README.md", "LICENSE", "go.mod", "go.sum", ".gitignore", ".ci", ".github",
	"wire", "client", "producer", "groupmember", "consumer", "txn", "admin", "fakebroker", "examples"}

// modules are the direct requirements that the root go.mod may have, and the folders that may import each; no folder
// means any. testFiles is any folder, in test files and in internal packages that only tests import.
var modules = map[string][]string{
	"github.com/klauspost/compress":     nil,
	"github.com/pierrec/lz4/v4":         nil,
	"github.com/golang/snappy":          nil,
	"github.com/xdg-go/scram":           nil,
	"github.com/zeebo/xxh3":             nil,
	"github.com/jcmturner/gokrb5/v8":    {"client/sasl/gssapi", "fakebroker/internal/security"},
	"github.com/stretchr/testify":       {testFiles},
	"github.com/alecthomas/kong":        {"fakebroker/cmd"},
	"github.com/schollz/progressbar/v3": {"fakebroker/cmd", "examples"},
}

const testFiles = "*_test.go"

// clientNever are packages that client and all it imports must not contain: a program that talks to Kafka does not carry
// a broker, an HTTP server or Kerberos.
var clientNever = []string{"net/http", modulePath + "/fakebroker", "github.com/jcmturner/gokrb5"}

// clientApart are folders below client that are allowed to: they are imported by those who want them.
var clientApart = []string{"client/sasl/gssapi"}
