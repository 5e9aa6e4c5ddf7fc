package producer

// PoisonBuffers makes the producer overwrite every buffer it gets back, so that a test sees who still reads it.
func PoisonBuffers(p *Producer) { p.mem.Poison = true }

// LimitUntold sets how many records may wait for their callbacks. It comes before the first record.
func LimitUntold(p *Producer, n int64) { p.teller.most = n }

// BufferUsed is what is charged to buffer.memory.
func BufferUsed(p *Producer) int {
	used, _ := p.mem.Used()
	return used
}
