// Command generate turns the schema files of wire/message and wire/logrecord into Go code. It writes one Go file for each
// schema file, the registries of both packages and the API table of package wire.
//
//	go generate ./wire/...                           writes the code
//	go run ./wire/internal/generate -readme          prints the table of supported APIs for the README
//
// Everything is read from and written below the folder wire, which -wire names. The notation is explained in parse.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

func main() {
	dir := flag.String("wire", "wire", "folder of package wire")
	readme := flag.Bool("readme", false, "print the table of APIs for the README instead")
	flag.Parse()
	if err := run(*dir, *readme); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir string, readme bool) error {
	set, err := load(dir)
	if err != nil {
		return err
	}
	if readme {
		_, err := os.Stdout.WriteString(readmeTable(set.message))
		return err
	}
	files, err := generate(set)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return removeStale(dir, files)
}

// schemas are all definitions, by package.
type schemas struct{ message, logrecord []*message }

// load reads and resolves the schemas of both packages: struct names must be unique over all of them.
func load(dir string) (schemas, error) {
	var set schemas
	var err error
	if set.message, err = loadPackage(filepath.Join(dir, "message", "schema")); err != nil {
		return set, err
	}
	if set.logrecord, err = loadPackage(filepath.Join(dir, "logrecord", "schema")); err != nil {
		return set, err
	}
	return set, resolve(append(append([]*message(nil), set.message...), set.logrecord...))
}

func loadPackage(dir string) ([]*message, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no schema files in %s", dir)
	}
	sort.Strings(names)
	var all []*message
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		messages, err := parse(strings.TrimSuffix(filepath.Base(name), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, messages...)
	}
	return all, nil
}

// generate makes every file in memory; the names are relative to the folder wire, with slashes.
func generate(set schemas) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, pkg := range []struct {
		name     string
		messages []*message
	}{{"message", set.message}, {"logrecord", set.logrecord}} {
		byFile := map[string][]*message{}
		for _, m := range pkg.messages {
			if !m.valid.empty() {
				byFile[m.file] = append(byFile[m.file], m)
			}
		}
		for file, messages := range byFile {
			content, err := emitFile(pkg.name, file, messages)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", pkg.name, file, err)
			}
			files[pkg.name+"/"+file+".go"] = content
		}
	}
	for name, emit := range map[string]func() ([]byte, error){
		"message/registry.go":   func() ([]byte, error) { return emitMessageRegistry(set.message) },
		"logrecord/registry.go": func() ([]byte, error) { return emitRecordRegistry(set.logrecord) },
		"apis.go":               func() ([]byte, error) { return emitAPIs(set.message) },
	} {
		content, err := emit()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = content
	}
	return files, nil
}

// removeStale deletes generated files whose schema is gone.
func removeStale(dir string, files map[string][]byte) error {
	for _, pkg := range []string{"message", "logrecord"} {
		names, err := filepath.Glob(filepath.Join(dir, pkg, "*.go"))
		if err != nil {
			return err
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if strings.HasPrefix(string(content), generatedMark) && files[pkg+"/"+filepath.Base(name)] == nil {
				if err := os.Remove(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
