package machine_test

import "github.com/ottla-kafka/ottla/groupmember/machine"

// legal is the transition list of State as a table; what is not in it must not happen.
var legal = map[machine.State][]machine.State{
	machine.Unknown:            {machine.FindingCoordinator, machine.Leaving, machine.Stalled, machine.Ended},
	machine.FindingCoordinator: {machine.Joining, machine.Syncing, machine.Revoking, machine.Reconciling, machine.Stable, machine.Stalled, machine.Leaving, machine.Ended},
	machine.Joining:            {machine.FindingCoordinator, machine.Syncing, machine.Revoking, machine.Reconciling, machine.Stable, machine.Stalled, machine.Leaving, machine.Ended},
	machine.Syncing:            {machine.FindingCoordinator, machine.Joining, machine.Revoking, machine.Stable, machine.Stalled, machine.Leaving, machine.Ended},
	machine.Revoking:           {machine.FindingCoordinator, machine.Joining, machine.Stalled, machine.Leaving, machine.Ended},
	machine.Reconciling:        {machine.FindingCoordinator, machine.Joining, machine.Stable, machine.Stalled, machine.Leaving, machine.Ended},
	machine.Stable:             {machine.FindingCoordinator, machine.Joining, machine.Revoking, machine.Reconciling, machine.Stalled, machine.Leaving, machine.Ended},
	machine.Stalled:            {machine.FindingCoordinator, machine.Joining, machine.Leaving, machine.Ended},
	machine.Leaving:            {machine.Ended},
	machine.Ended:              {},
}
