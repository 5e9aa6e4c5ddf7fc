"""kafka-python copies a topic into another, exactly once, until it is killed.

usage: kafkapython_pipe.py BOOTSTRAP GROUP IN OUT NAME PROTOCOL; it speaks the classic protocol only, and exits with 3 when
something goes wrong that a restart is for."""
import sys
import time
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata

bootstrap, group, source, target, name, _ = sys.argv[1:7]
producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=name, transactional_id=name)
producer.init_transactions()
consumer = KafkaConsumer(source, bootstrap_servers=bootstrap, client_id=name, group_id=group, enable_auto_commit=False,
                         auto_offset_reset="earliest", isolation_level="read_committed", session_timeout_ms=6000,
                         heartbeat_interval_ms=500)
while True:
    polled = consumer.poll(timeout_ms=200, max_records=30)
    if not polled:
        continue
    producer.begin_transaction()
    offsets = {}
    for partition, records in polled.items():
        for record in records:
            time.sleep(0.001)
            producer.send(target, record.value, record.key)
        offsets[partition] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
    try:
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
    except Exception as e:
        print(name, "ends:", repr(e), file=sys.stderr, flush=True)
        sys.exit(3)
