//go:build !linux

package network

import "syscall"

// kernelSend is Linux's: elsewhere stored bytes are copied.
func (s *sender) kernelSend(syscall.Conn, FileRegion) (bool, error) { return false, nil }
