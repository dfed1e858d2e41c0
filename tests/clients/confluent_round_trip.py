"""Writes key|line from standard input with acks=all, and prints what a group of two reads: ADDRESS TOPIC COUNT."""
import sys

from confluent_kafka import Consumer, Producer

address, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
failures = []
producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 5, "compression.type": "zstd"})
for text in sys.stdin:
    key, line = text.rstrip("\n").split("|", 1)
    producer.produce(topic, line, key, on_delivery=lambda error, _: error and failures.append(error))
    producer.poll(0)
producer.flush(60)
assert not failures, failures[:3]

settings = {"bootstrap.servers": address, "group.id": "confluent", "auto.offset.reset": "earliest"}
members = [Consumer(settings), Consumer(settings)]
for member in members:
    member.subscribe([topic])
read = 0
out = sys.stdout
while read < count:
    for member in members:
        for message in member.consume(500, timeout=0.1):
            assert not message.error(), message.error()
            read += 1
            out.write(message.value().decode() + "\n")
for member in members:
    member.commit(asynchronous=False) if member.assignment() else None
    member.close()
again = Consumer(settings)
again.subscribe([topic])
more = again.consume(1, timeout=3)
assert not more, f"the group goes on where it was, but got {more[0].value()}"
again.close()
