"""Prints all that is in a topic, each partition's lines in their order: ADDRESS TOPIC."""
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

address, topic = sys.argv[1:3]
consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "check.crcs": True})
partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
left = {}
for partition in partitions:
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
    if high > low:
        left[partition] = high
consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in left])
while left:
    for message in consumer.consume(1000, timeout=1):
        assert not message.error(), message.error()
        sys.stdout.write(message.value().decode() + "\n")
        if message.offset() + 1 == left.get(message.partition()):
            del left[message.partition()]
consumer.close()
