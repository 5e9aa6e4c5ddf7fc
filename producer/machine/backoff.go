package machine

import "time"

// random is splitmix64: small, seeded by the driver, the same on every run.
type random uint64

func (r *random) float() float64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// backoff is the pause before attempt number failures+1: retry.backoff.ms
// doubled each time up to retry.backoff.max.ms, 20 % more or less (KIP-580).
func (m *Machine) backoff(failures int) time.Duration {
	d := m.cfg.RetryBackoff
	for i := 1; i < failures && d < m.cfg.RetryBackoffMax; i++ {
		d *= 2
	}
	d = min(d, m.cfg.RetryBackoffMax)
	return time.Duration(float64(d) * (0.8 + 0.4*m.rand.float()))
}
