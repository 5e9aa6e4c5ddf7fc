package machine

// fifo is a queue that keeps its array: in steady state it allocates nothing.
type fifo[T any] struct {
	items []T
	head  int // of items; what is in front is free
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

// at is the i-th from the front.
func (q *fifo[T]) at(i int) *T { return &q.items[q.head+i] }

func (q *fifo[T]) push(v T) { q.items = append(q.items, v) }

// drop removes the first n. What is behind moves to the front when at least half of the array is free there.
func (q *fifo[T]) drop(n int) {
	clear(q.items[q.head : q.head+n])
	q.head += n
	if q.head == len(q.items) || q.head >= 32 && 2*q.head >= len(q.items) {
		left := copy(q.items, q.items[q.head:])
		clear(q.items[left:])
		q.items, q.head = q.items[:left], 0
	}
}

// cut keeps the first n.
func (q *fifo[T]) cut(n int) {
	clear(q.items[q.head+n:])
	q.items = q.items[:q.head+n]
}
