// Package examples holds runnable programs, one folder each, and the tests that keep them and the README true.
//
//	quickstart  files through Kafka and back, compared: the first thing to run
//	eos         a pipeline that is exactly once while workers are killed and the broker crashes
//	pipeline    the README's pipeline that is exactly once
//	produce     the README's producer
//	consume     the README's consumer
//	group       the README's member of a consumer group
//	intests     the README's test with a broker inside
//	synctest    tests in virtual time: a minute without a broker in no time
//	javaconfig  the configuration files of a Java service, used as they are
package examples
