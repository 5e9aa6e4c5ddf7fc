package main

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage/dump"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// dumpLogCmd prints files of a data folder in the words of Apache Kafka's DumpLogSegments. The broker may be running.
type dumpLogCmd struct {
	Files   []string `arg:"" name:"file" help:"Files of a data folder; a folder stands for all that is in it."`
	Records bool     `name:"print-data-log" aliases:"records" short:"r" help:"Print every record, not only the batches; what internal topics hold is decoded by the folder's name."`
	Verify  bool     `name:"verify-index-only" aliases:"verify" help:"Compare .index and .timeindex with their log instead of printing them."`
}

// Run prints all files in the order of the command line. One that cannot be read does not keep the others from being
// printed: the errors are told at the end, together.
func (c *dumpLogCmd) Run(io streams) error {
	files, err := expandFolders(c.Files)
	if err != nil {
		return fmt.Errorf("dump-log: %w", err)
	}
	var failed []error
	for _, file := range files {
		err := dump.File(io.out, vfs.OSFS{}, file, dump.Options{Records: c.Records, Verify: c.Verify})
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// expandFolders replaces folders by the files in and below them. Locks and the like are left out there, but not when they
// are named.
func expandFolders(names []string) (files []string, err error) {
	for _, name := range names {
		err := filepath.WalkDir(name, func(path string, entry iofs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if path == name || printable(path) {
				files = append(files, path)
			}
			return nil
		})
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: there is no such file", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// printable tells whether a file of a data folder holds something to print.
func printable(path string) bool {
	switch filepath.Ext(path) {
	case ".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot":
		return true
	}
	base := filepath.Base(path)
	return strings.HasSuffix(base, "-checkpoint") || base == "meta.properties" || base == "partition.metadata"
}
