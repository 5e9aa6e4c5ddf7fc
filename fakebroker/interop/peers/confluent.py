"""confluent-kafka (librdkafka) produces keyed records with each codec and reads them back by assignment.

usage: confluent.py BOOTSTRAP TOPIC COUNT; prints what it read as one line, exits 1 on any difference."""
import sys
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
want, failed = {}, []
for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20,
                         "enable.idempotence": True})
    for i in range(count):
        key, value = f"{codec}-{i % 7}".encode(), f"{codec} {i} ".encode() * (1 + i % 30)
        want.setdefault(key, []).append(value)
        producer.produce(topic, value, key, headers=[("n", str(i).encode()), ("none", None)],
                         on_delivery=lambda err, msg: failed.append(err) if err else None)
        producer.poll(0)
    producer.flush(200)
if failed:
    sys.exit(f"not delivered: {failed[:3]}")

consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
                     "auto.offset.reset": "earliest", "check.crcs": True})
partitions = consumer.list_topics(topic, 200).topics[topic].partitions
consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
got, read, total = {}, 0, 5 * count
while read < total:
    message = consumer.poll(200)
    if message is None:
        sys.exit(f"read {read} of {total}, then nothing for 200 s")
    if message.error():
        raise KafkaException(message.error())
    got.setdefault(message.key(), []).append(message.value())
    assert message.headers()[1] == ("none", None), message.headers()
    read += 1
low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), 200)
consumer.close()
if got != want:
    sys.exit("what was read differs from what was written")
print(f"confluent-kafka: {read} records in {len(partitions)} partitions identical, partition 0 ends at {high}")
