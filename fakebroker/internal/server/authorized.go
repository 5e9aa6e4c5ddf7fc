package server

// Authorized operations are bit sets of AclOperation codes. This broker has no authorizer: everybody may do everything
// that a resource supports.
const (
	notAsked          int32 = -1 << 31 // the client did not ask
	topicOperations   int32 = 1<<opRead | 1<<opWrite | 1<<opCreate | 1<<opDelete | 1<<opAlter | 1<<opDescribe | 1<<opDescribeConfigs | 1<<opAlterConfigs
	clusterOperations int32 = 1<<opCreate | 1<<opAlter | 1<<opDescribe | 1<<opClusterAction | 1<<opDescribeConfigs | 1<<opAlterConfigs | 1<<opIdempotentWrite
)

// The codes of AclOperation.
const (
	opRead            = 3
	opWrite           = 4
	opCreate          = 5
	opDelete          = 6
	opAlter           = 7
	opDescribe        = 8
	opClusterAction   = 9
	opDescribeConfigs = 10
	opAlterConfigs    = 11
	opIdempotentWrite = 12
)

func operations(asked bool, all int32) int32 {
	if asked {
		return all
	}
	return notAsked
}
