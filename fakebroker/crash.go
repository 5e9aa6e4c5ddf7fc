package fakebroker

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// Crash ends the broker as kill -9 does: connections break off, requests under way are applied or not and never
// answered, nothing is flushed or tidied, and no file says that the stop was a clean one. What had been written is
// there for Restart, in memory as on disk: a process dies, the machine stays up. When it returns, the broker's
// goroutines have ended. Crashing a stopped cluster does nothing.
func (k *Cluster) Crash(ctx context.Context) error {
	if err := begun(ctx); err != nil {
		return err
	}
	release, err := k.exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	if b, err := k.running(); err == nil {
		k.muzzle.Store(true) // the dead say nothing: every write they still try is refused
		k.process.Kill(b.Cut)
	}
	if err := k.stop(ctx); k.ending != nil {
		return err
	}
	return nil // what stop may have said is of the writes that were refused
}

// muzzled is a log handler that can be silenced.
type muzzled struct {
	slog.Handler
	off *atomic.Bool
}

// Enabled implements slog.Handler.
func (m muzzled) Enabled(ctx context.Context, l slog.Level) bool {
	return !m.off.Load() && m.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (m muzzled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return muzzled{m.Handler.WithAttrs(attrs), m.off}
}

// WithGroup implements slog.Handler.
func (m muzzled) WithGroup(name string) slog.Handler {
	return muzzled{m.Handler.WithGroup(name), m.off}
}
