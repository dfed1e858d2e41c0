"""Writes key|line from standard input with acks=all and notes each acknowledged line in LEDGER: ADDRESS TOPIC LEDGER."""
import sys

from confluent_kafka import Producer

address, topic, ledger = sys.argv[1], sys.argv[2], open(sys.argv[3], "w", buffering=1)


def delivered(error, message):
    if error:
        sys.exit(f"not delivered: {error}")
    ledger.write(message.value().decode() + "\n")


producer = Producer({
    "bootstrap.servers": address,
    "acks": "all",
    # One request at a time, so that what is sent again does not overtake.
    "max.in.flight.requests.per.connection": 1,
    "batch.num.messages": 50,
    "message.timeout.ms": 80000,
    "reconnect.backoff.max.ms": 200,
    "queue.buffering.max.messages": 1000,
})
for text in sys.stdin:
    key, line = text.rstrip("\n").split("|", 1)
    while True:
        try:
            producer.produce(topic, line, key, on_delivery=delivered)
            break
        except BufferError:
            producer.poll(0.05)
    producer.poll(0)
left = producer.flush(80)
assert left == 0, f"{left} lines are neither acknowledged nor refused"
