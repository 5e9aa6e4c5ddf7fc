package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// input is the first n lines of the named files and folders; without names, of the Go files of the module around the working
// folder, or of Go itself. Lines are cut at 1,000 bytes.
func input(names []string, n int) (lines []string, err error) {
	if n < 1 {
		return nil, fmt.Errorf("-n is %d, must be at least 1", n)
	}
	own := len(names) == 0
	if own {
		names = []string{module()}
	}
	for _, name := range names {
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case len(lines) == n:
				return fs.SkipAll
			case d.IsDir() && d.Name() == ".git":
				return fs.SkipDir
			case !d.Type().IsRegular() || own && !strings.HasSuffix(path, ".go"):
				return nil
			}
			lines, err = appendLines(lines, path, n)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("no lines in %v", names)
	}
	return lines, nil
}

func appendLines(lines []string, path string, n int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return lines, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1000)
	for len(lines) < n {
		line, _, err := r.ReadLine()
		if err != nil {
			return lines, nil // its end
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// module is the folder at or above the working folder that holds go.mod, else Go's own source.
func module() string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	root, _ := exec.Command("go", "env", "GOROOT").Output() // without Go there is no such folder, which reading it will say
	return filepath.Join(strings.TrimSpace(string(root)), "src")
}
