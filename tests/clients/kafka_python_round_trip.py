"""Writes key|line from standard input with acks=all, and prints what a group of two reads: ADDRESS TOPIC COUNT."""
import sys
from threading import Thread

from kafka import KafkaConsumer, KafkaProducer

address, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
producer = KafkaProducer(bootstrap_servers=address, acks="all", linger_ms=5, compression_type="gzip")
sent = []
for text in sys.stdin:
    key, line = text.rstrip("\n").split("|", 1)
    sent.append(producer.send(topic, line.encode(), key.encode()))
producer.flush(60)
for future in sent:
    future.get(timeout=60)
producer.close()

read = []


def consume():
    member = KafkaConsumer(
        bootstrap_servers=address, group_id="kafka-python", auto_offset_reset="earliest", metadata_max_age_ms=1000
    )
    # kafka-python 3.0.12 now and then forgets a subscription that is made while it bootstraps.
    member.topics()
    member.subscribe([topic])
    while len(read) < count:
        for messages in member.poll(timeout_ms=1000).values():
            read.extend(message.value.decode() + "\n" for message in messages)
    member.close()


# kafka-python 3.0.12 drops its share when its join ends while nobody polls, and then joins again or stays without one. So
# each member has a thread that polls all the time; two that are polled in turns can make each other join for ever.
members = [Thread(target=consume) for _ in range(2)]
for member in members:
    member.start()
for member in members:
    member.join()
sys.stdout.writelines(read)
