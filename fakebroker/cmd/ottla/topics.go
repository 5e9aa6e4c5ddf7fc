package main

// topicsCmd are the commands about topics; each has a file.
type topicsCmd struct {
	List     topicsListCmd     `cmd:"" aliases:"ls" help:"List topics."`
	Create   topicsCreateCmd   `cmd:"" help:"Create topics."`
	Describe topicsDescribeCmd `cmd:"" help:"Show partitions, replicas and configurations of topics."`
	Alter    topicsAlterCmd    `cmd:"" help:"Add partitions to a topic, or change its configurations."`
	Delete   topicsDeleteCmd   `cmd:"" help:"Delete topics with all their records (shows what would go; --yes does it)."`
}
