package arrows

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoomsImportDownwards(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || within(s.folder, free) {
			continue // tests of a room may use the broker and what else they need
		}
		from := room(s.folder)
		allowed, known := rooms[from]
		if !known {
			t.Errorf("%s: no room %q in the house", &s, from)
			continue
		}
		for _, i := range s.imports {
			if folder, ok := ours(i); ok && room(folder) != from && !slices.Contains(allowed, room(folder)) {
				t.Errorf("%s: %s may not import %s", &s, from, folder)
			}
		}
	}
}

func TestBrokerPackagesImportLowerFloors(t *testing.T) {
	const internal = "fakebroker/internal/"
	height := map[string]int{}
	for i, floor := range floors {
		for _, p := range floor {
			height[p] = i
		}
	}
	for _, s := range sources(t) {
		if within(s.folder, vocabulary) && !s.test {
			for _, i := range s.imports {
				if folder, _ := ours(i); room(folder) == "fakebroker" && folder != s.folder {
					t.Errorf("%s: %s may not import %s", &s, s.folder, folder)
				}
			}
		}
		rest, ok := strings.CutPrefix(s.folder, internal)
		if !ok {
			continue
		}
		from := room(rest)
		if _, known := height[from]; !known {
			t.Errorf("%s: package %s has no floor", &s, from)
			continue
		}
		if s.test {
			continue
		}
		for _, i := range s.imports {
			folder, _ := ours(i)
			rest, ok := strings.CutPrefix(folder, internal)
			if !ok {
				if folder != "" && room(folder) == "fakebroker" && !within(folder, vocabulary) {
					t.Errorf("%s: %s may not import %s, which is above it", &s, from, folder)
				}
				continue
			}
			if to := room(rest); to != from && (height[to] >= height[from] || slices.Contains(never[from], to)) {
				t.Errorf("%s: %s may not import %s", &s, from, to)
			}
		}
	}
}

func TestTopLevelIsClosed(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != ".git" && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}

// testHelp are the folders below an internal one that test files alone import: help for tests, which may use what tests
// use.
func testHelp(all []source) []string {
	byProgram, help := map[string]bool{}, []string{}
	for _, s := range all {
		for _, i := range s.imports {
			if folder, ok := ours(i); ok && !s.test {
				byProgram[folder] = true
			}
		}
	}
	for _, s := range all {
		if strings.Contains(s.folder, "/internal/") && !byProgram[s.folder] {
			help = append(help, s.folder)
		}
	}
	return help
}

func TestModulesAreTheListedOnes(t *testing.T) {
	all := sources(t)
	help := testHelp(all)
	for _, m := range directRequirements(t) {
		require.Contains(t, modules, m, "direct requirement in go.mod")
	}
	for _, s := range all {
		for _, i := range s.imports {
			if _, ok := ours(i); ok || !strings.Contains(room(i), ".") {
				continue // our own or the standard library
			}
			module := moduleOf(i)
			folders, known := modules[module]
			if !known {
				t.Errorf("%s: imports %s, of a module that is not listed", &s, i)
				continue
			}
			if folders == nil || within(s.folder, folders) || slices.Contains(folders, testFiles) && (s.test || slices.Contains(help, s.folder)) {
				continue
			}
			t.Errorf("%s: only %v may import %s", &s, folders, i)
		}
	}
}

// moduleOf is the listed module that a package is of, or the package.
func moduleOf(importPath string) string {
	for m := range modules {
		if importPath == m || strings.HasPrefix(importPath, m+"/") {
			return m
		}
	}
	return importPath
}

// directRequirements are the modules in go.mod that are not marked indirect.
func directRequirements(t *testing.T) []string {
	text, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	require.NoError(t, err)
	var direct []string
	block := false
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "require" && words[len(words)-1] == "(":
			block = true
		case words[0] == ")":
			block = false
		case strings.Contains(line, "// indirect"):
		case words[0] == "require":
			direct = append(direct, words[1])
		case block:
			direct = append(direct, words[0])
		}
	}
	return direct
}

// Transitive imports are the go command's business: build constraints and other modules count.
func TestClientPullsInNeitherBrokerNorHTTPNorKerberos(t *testing.T) {
	goTool, err := exec.LookPath("go")
	require.NoError(t, err, "the go command is needed to list what client pulls in")
	for _, pkg := range list(t, goTool, "./client/...") {
		folder, _ := ours(pkg)
		if within(folder, clientApart) {
			continue
		}
		for _, dep := range list(t, goTool, "-deps", pkg) {
			if within(dep, clientNever) {
				t.Errorf("%s pulls in %s", pkg, dep)
			}
		}
	}
}

func list(t *testing.T, goTool string, args ...string) []string {
	cmd := exec.Command(goTool, append([]string{"list", "-e"}, args...)...)
	cmd.Dir = root(t)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
