"""confluent-kafka (librdkafka) copies a topic into another, exactly once, until it is killed.

usage: confluent_pipe.py BOOTSTRAP GROUP IN OUT NAME PROTOCOL; it exits with 3 when only a restart helps."""
import sys
import time
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

bootstrap, group, source, target, name, protocol = sys.argv[1:7]
config = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": name, "auto.offset.reset": "earliest",
          "enable.auto.commit": False, "isolation.level": "read_committed", "topic.metadata.refresh.interval.ms": 1000}
if protocol == "consumer":
    config["group.protocol"] = "consumer"
else:
    config.update({"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
consumer = Consumer(config)
producer = Producer({"bootstrap.servers": bootstrap, "client.id": name, "transactional.id": name, "linger.ms": 5})


def rewind():
    """Goes back to the committed offsets of what is owned: after an abort nothing since counts."""
    owned = consumer.assignment()
    for p in consumer.committed(owned, 30):
        consumer.seek(TopicPartition(p.topic, p.partition, p.offset if p.offset >= 0 else 0))


def commit():
    """Commits the transaction with the offsets of what is owned; before partitions are given up, too."""
    owned = [p for p in consumer.position(consumer.assignment()) if p.offset >= 0]
    if owned:
        producer.send_offsets_to_transaction(owned, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    opened.clear()


def begin():
    producer.begin_transaction()
    opened.append(True)


def revoked(*_):
    if opened:
        commit()


def lost(*_):
    if opened:
        producer.abort_transaction(30)
        opened.clear()


def transaction():
    """Copies some records."""
    read, until = 0, time.monotonic() + 0.05
    while read < 30 and (read == 0 or time.monotonic() < until):
        message = consumer.poll(0.02 if read else 0.2)
        if message is None:
            if read == 0:
                break
            continue
        if message.error():
            raise KafkaException(message.error())
        if not opened:
            begin()
        time.sleep(0.001)
        producer.produce(target, message.value(), message.key())
        producer.poll(0)
        read += 1
    if opened:
        commit()


opened = []  # has an element while a transaction is open
producer.init_transactions(60)
consumer.subscribe([source], on_revoke=revoked, on_lost=lost)
while True:
    try:
        transaction()
    except KafkaException as e:
        error = e.args[0]
        print(name, error, file=sys.stderr, flush=True)
        if not error.txn_requires_abort():
            sys.exit(3)
        producer.abort_transaction(30)
        opened.clear()
        rewind()
