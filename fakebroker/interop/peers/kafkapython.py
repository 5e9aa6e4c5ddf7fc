"""kafka-python produces keyed records with each codec and reads them back by assignment.

usage: kafkapython.py BOOTSTRAP TOPIC COUNT; prints what it read as one line, exits 1 on any difference."""
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
want = {}
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
for codec in CODECS:
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=10)
    sent = []
    for i in range(count):
        key, value = f"{codec}-{i % 5}".encode(), f"{codec} {i} ".encode() * (1 + i % 20)
        want.setdefault(key, []).append(value)
        sent.append(producer.send(topic, value, key, headers=[("n", str(i).encode())]))
    producer.flush(200)
    for future in sent:
        future.get(200)
    producer.close()

consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest")
partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]
consumer.assign(partitions)
consumer.seek_to_beginning()
got, read, total, idle = {}, 0, len(CODECS) * count, 0
while read < total:
    batches = consumer.poll(timeout_ms=1000)
    idle = 0 if batches else idle + 1
    if idle > 200:
        sys.exit(f"read {read} of {total}, then nothing for 200 s")
    for records in batches.values():
        for record in records:
            got.setdefault(record.key, []).append(record.value)
            read += 1
ends = consumer.end_offsets(partitions)
consumer.close(autocommit=False)
if got != want:
    sys.exit("what was read differs from what was written")
if sum(ends.values()) != total:
    sys.exit(f"end offsets {ends} do not add up to {total}")
print(f"kafka-python: {read} records in {len(partitions)} partitions identical")
