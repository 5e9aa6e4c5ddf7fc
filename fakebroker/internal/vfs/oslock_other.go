//go:build !unix || solaris || aix

package vfs

import "os"

// lockFile does nothing where the standard library offers no lock.
func lockFile(*os.File) error { return nil }
