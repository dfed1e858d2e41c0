"""Prints all that is committed in a topic, each partition's lines in their order: ADDRESS TOPIC."""
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

address, topic = sys.argv[1:3]
consumer = Consumer({
    "bootstrap.servers": address,
    "group.id": "reader",
    "check.crcs": True,
    "isolation.level": "read_committed",
    # An end marker may be the last that stands in a partition, and no consumer is given it.
    "enable.partition.eof": True,
})
left = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in left])
while left:
    for message in consumer.consume(1000, timeout=1):
        if message.error() and message.error().code() == KafkaError._PARTITION_EOF:
            left.discard(message.partition())
            continue
        assert not message.error(), message.error()
        sys.stdout.write(message.value().decode() + "\n")
consumer.close()
