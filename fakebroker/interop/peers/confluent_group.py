"""confluent-kafka (librdkafka) as a member of a group, until SIGTERM.

usage: confluent_group.py BOOTSTRAP GROUP TOPIC PROTOCOL ASSIGNOR SESSION-MS; prints "owns P P ..." (everything that it owns now)
after each rebalance and "read P VALUE" for each record."""
import signal
import sys
from confluent_kafka import Consumer, KafkaException

bootstrap, group, topic, protocol, assignor, session = sys.argv[1:7]
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
    config.update({"partition.assignment.strategy": assignor, "session.timeout.ms": int(session), "heartbeat.interval.ms": 500})
consumer = Consumer(config)
consumer.subscribe([topic], on_assign=changed(owned.update), on_revoke=changed(owned.difference_update),
                   on_lost=changed(owned.difference_update))
while running:
    message = consumer.poll(0.2)
    if message is None:
        continue
    if message.error():
        if message.error().fatal():
            raise KafkaException(message.error())
        print(message.error(), file=sys.stderr, flush=True)
        continue
    say("read", message.partition(), message.value().decode())
consumer.close()
