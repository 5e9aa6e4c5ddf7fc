"""confluent-kafka (librdkafka) as a member of a group, until SIGTERM.

usage: confluent_group.py BOOTSTRAP GROUP TOPIC PROTOCOL ASSIGNOR; prints "owns P P ..." (everything that it owns now)
after each rebalance and "read P VALUE" for each record."""
import signal
import sys
from confluent_kafka import Consumer, KafkaError, KafkaException

bootstrap, group, topic, protocol, assignor = sys.argv[1:6]
running, owned = [True], set()
signal.signal(signal.SIGTERM, lambda *_: running.clear())


def say(*words):
    print(*words, flush=True)


def changed(change):
    def callback(_, partitions):
        change({p.partition for p in partitions})
        say("owns", *sorted(owned))
    return callback


config = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "confluent", "auto.offset.reset": "earliest",
          "auto.commit.interval.ms": 500, "topic.metadata.refresh.interval.ms": 1000}
if protocol == "consumer":
    config["group.protocol"] = "consumer"
else:
    config.update({"partition.assignment.strategy": assignor, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
consumer = Consumer(config)
consumer.subscribe([topic], on_assign=changed(owned.update), on_revoke=changed(owned.difference_update),
                   on_lost=changed(owned.difference_update))
while running:
    message = consumer.poll(0.2)
    if message is None:
        continue
    if message.error():
        if message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART or message.error().retriable():
            continue
        raise KafkaException(message.error())
    say("read", message.partition(), message.value().decode())
consumer.close()
