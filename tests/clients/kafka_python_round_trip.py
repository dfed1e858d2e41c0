"""Writes key|line from standard input with acks=all, and prints what a group of one reads: ADDRESS TOPIC COUNT."""
import sys

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

consumer = KafkaConsumer(
    bootstrap_servers=address, group_id="kafka-python", auto_offset_reset="earliest", metadata_max_age_ms=1000
)
# kafka-python 3.0.12 now and then forgets a subscription that is made while it bootstraps.
consumer.topics()
consumer.subscribe([topic])
read = 0
while read < count:
    for messages in consumer.poll(timeout_ms=100).values():
        for message in messages:
            read += 1
            sys.stdout.write(message.value.decode() + "\n")
consumer.close()
