package client

// Lane is a purpose of the caller's own: its calls share a connection with nobody else's. It is for requests that a
// broker may hold back for long and that others must not wait behind, such as a group member's JoinGroup. base says what
// it is like, for names and events. free closes the lane's connections when nothing is under way on them any more; calls
// of a freed lane open new ones.
func (c *Client) Lane(base Purpose) (lane Purpose, free func()) {
	lane = Purpose(c.lanes.Add(1))<<laneShift | base
	return lane, func() {
		var own []*link
		c.linksMu.Lock()
		for k, l := range c.links {
			if k.purpose == lane {
				own = append(own, l)
				delete(c.links, k)
			}
		}
		c.linksMu.Unlock()
		for _, l := range own {
			l.retire()
		}
	}
}

// laneShift leaves room for the purposes that all share.
const laneShift = 8
