package wiretest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Stories plays each testdata/*.txt in a test of its own. A story is a script with, behind its commands, what came of them:
// play gets it whole, passes over the outcomes, and returns it with those of today. A difference fails the test; with the
// environment variable OTTLA_UPDATE set it becomes the story instead.
func Stories(t *testing.T, play func(t *testing.T, story string) string) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in testdata/*.txt (%v)", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			Story(t, name, play(t, string(want)))
		})
	}
}

// Story compares text with a file, as Golden does with bytes, and shows the first line that differs.
func Story(tb testing.TB, name, got string) {
	tb.Helper()
	if os.Getenv("OTTLA_UPDATE") != "" {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		tb.Fatalf("%v (OTTLA_UPDATE=1 writes it)", err)
	}
	if string(want) == got {
		return
	}
	theirs, ours := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	n := 0
	for n < min(len(theirs), len(ours)) && theirs[n] == ours[n] {
		n++
	}
	around := func(lines []string) string { return strings.Join(lines[max(0, n-6):min(len(lines), n+6)], "\n") }
	tb.Errorf("%s differs from line %d on\nwant:\n%s\n\ngot:\n%s", name, n+1, around(theirs), around(ours))
}
