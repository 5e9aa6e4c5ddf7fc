package machine

import "time"

// Rand is a seeded source of randomness (splitmix64). It is a value: a copy draws the same numbers again.
type Rand struct{ state uint64 }

// NewRand starts a stream.
func NewRand(seed uint64) Rand { return Rand{state: seed} }

// Uint64 draws 64 bits.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float64 draws from [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Intn draws from [0, n). It panics unless n is positive.
func (r *Rand) Intn(n int) int {
	if n <= 0 {
		panic("machine: Intn of a number below one")
	}
	return int(r.Uint64() % uint64(n))
}

// Backoff is Kafka's exponential back-off (KIP-580): the first wait is First, each further one twice as long, up
// to Most, and every one is varied by up to 20 % either way so that clients do not come back in step.
type Backoff struct{ First, Most time.Duration }

const jitter = 0.2

// After is the wait after so many failures; zero failures wait for nothing.
func (b Backoff) After(failures int, r *Rand) time.Duration {
	if failures <= 0 || b.First <= 0 {
		return 0
	}
	d := b.Exact(failures)
	varied := time.Duration(float64(d) * (1 - jitter + 2*jitter*r.Float64()))
	return min(varied, max(b.Most, b.First))
}

// Exact is the wait after so many failures without jitter.
func (b Backoff) Exact(failures int) time.Duration {
	d := b.First
	for i := 1; i < failures && d < b.Most; i++ {
		d *= 2
	}
	return min(d, max(b.Most, b.First))
}
