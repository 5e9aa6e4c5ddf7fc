"""kafka-python reads partition 0 of a topic from the start and prints the values, one a line.

usage: kafkapython_read.py BOOTSTRAP TOPIC COUNT"""
import sys
from kafka import KafkaConsumer, TopicPartition

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, check_crcs=True,
                         max_partition_fetch_bytes=4 << 20)
partition = TopicPartition(topic, 0)
consumer.assign([partition])
consumer.seek(partition, 0)
read, idle = 0, 0
while read < count:
    records = consumer.poll(timeout_ms=1000).get(partition, [])
    idle = 0 if records else idle + 1
    if idle > 200:
        sys.exit(f"read {read} of {count}, then nothing for 200 s")
    for record in records:
        sys.stdout.buffer.write(record.value + b"\n")
        read += 1
consumer.close(autocommit=False)
