package client

import "github.com/ottla-kafka/ottla/client/machine"

// Feature is the level of a feature that is in force in the cluster, such as "transaction.version" (KIP-584), and the
// epoch of that knowledge, which grows with each change. Level 0 stands for a feature that is off or not known. Every
// connection brings the picture of its broker; the one with the highest epoch counts. ok is false as long as no broker has
// said anything: none was connected yet, or all are older than 2.7. It is cheap enough to be asked each time.
func (c *Client) Feature(name string) (level int16, epoch int64, ok bool) {
	f := c.features.Load()
	if f == nil {
		return 0, -1, false
	}
	return f.Level(name), f.Epoch, true
}

// learnFeatures takes what a new connection was told.
func (c *Client) learnFeatures(news *machine.Features) {
	if news == nil || news.Epoch < 0 {
		return
	}
	for {
		old := c.features.Load()
		if old != nil && old.Epoch >= news.Epoch || c.features.CompareAndSwap(old, news) {
			return
		}
	}
}
