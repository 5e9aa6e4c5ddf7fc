"""kafka-python as a member of a group, until SIGTERM.

usage: kafkapython_group.py BOOTSTRAP GROUP TOPIC PROTOCOL ASSIGNOR SESSION-MS; prints "owns P P ..." (everything that it owns now)
after each rebalance and "read P VALUE" for each record. It speaks the classic protocol only."""
import signal
import sys
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

bootstrap, group, topic, _, assignor, session = sys.argv[1:7]
running = [True]
signal.signal(signal.SIGTERM, lambda *_: running.clear())


def say(*words):
    print(*words, flush=True)


class Listener(ConsumerRebalanceListener):
    """Keeps count of what is owned: with a cooperative assignor each call names what is new or goes."""

    def __init__(self):
        self.owned = set()

    def on_partitions_assigned(self, assigned):
        self.owned.update(p.partition for p in assigned)
        say("owns", *sorted(self.owned))

    def on_partitions_revoked(self, revoked):
        self.owned.difference_update(p.partition for p in revoked)
        say("owns", *sorted(self.owned))

    on_partitions_lost = on_partitions_revoked


assignors = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, client_id="kafka-python", auto_offset_reset="earliest",
                         auto_commit_interval_ms=500, session_timeout_ms=int(session), heartbeat_interval_ms=500,
                         partition_assignment_strategy=[assignors[assignor]])
consumer.subscribe([topic], listener=Listener())
while running:
    for records in consumer.poll(timeout_ms=200).values():
        for record in records:
            say("read", record.partition, record.value.decode())
consumer.close()
