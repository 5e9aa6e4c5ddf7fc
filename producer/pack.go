package producer

import (
	"runtime"
	"sync"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// packer compresses sealed batches, off the submitters' goroutines and off the loop. Its goroutines come when there
// is work and go when there is none; at most as many as there are processors.
type packer struct {
	p    *Producer
	c    *compress.Compressor
	most int

	mu      sync.Mutex
	queue   []*batch
	busy    int
	scratch [][]byte // of those who are not at work, one each at most
}

func newPacker(p *Producer) (*packer, error) {
	c, err := compress.NewCompressor(p.cfg.Compression, p.cfg.level())
	if err != nil {
		return nil, err
	}
	return &packer{p: p, c: c, most: runtime.GOMAXPROCS(0)}, nil
}

func (k *packer) add(b *batch) {
	k.mu.Lock()
	k.queue = append(k.queue, b)
	more := k.busy < k.most
	if more {
		k.busy++
		k.p.life.Add(1)
	}
	k.mu.Unlock()
	if more {
		go k.work() // ends when the queue is empty
	}
}

func (k *packer) work() {
	defer k.p.life.Done()
	var scratch []byte
	for {
		k.mu.Lock()
		if scratch == nil && len(k.scratch) > 0 {
			scratch = k.scratch[len(k.scratch)-1]
			k.scratch = k.scratch[:len(k.scratch)-1]
		}
		if len(k.queue) == 0 {
			k.busy--
			if scratch != nil {
				k.scratch = append(k.scratch, scratch)
			}
			k.mu.Unlock()
			return
		}
		b := k.queue[0]
		k.queue = append(k.queue[:0], k.queue[1:]...)
		k.mu.Unlock()
		scratch = k.pack(b, scratch[:0])
		k.p.loop.prepared(b)
	}
}

// pack compresses b by way of scratch, so that the memory b holds afterwards is no more than it needs.
func (k *packer) pack(b *batch, scratch []byte) []byte {
	if n := b.b.Size() / 2; cap(scratch) < n {
		scratch = make([]byte, 0, n)
	}
	scratch = b.b.SealCompressed(scratch, record.NoProducer(), k.c)
	b.dropBuffer(k.p.mem)
	b.packed = append(k.p.mem.Force(len(scratch))[:0], scratch...)
	return scratch
}

// stop drops what is queued: nobody waits for it any more.
func (k *packer) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue = nil
}
