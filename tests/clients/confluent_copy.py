"""Copies COUNT lines from one topic to another in transactions that carry the group's offsets along, and aborts some: ADDRESS FROM TO COUNT PROGRESS.

PROGRESS is a file that gets a line for each transaction that has committed.

Ends once the group has committed the end of every partition. Whatever goes wrong is aborted and begun anew from what is committed.
"""
import os
import random
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

address, source, target, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
progress = open(sys.argv[5], "a", buffering=1)
PARTITIONS = 4
# librdkafka 2.12 now and then sends no TxnOffsetCommit after a coordinator was gone for a moment, and its time-out does not count:
# then this program dies and begins anew, which fences what it was before.
PATIENCE_SECONDS = 8
dice = random.Random()
last_step = time.monotonic()


def watch():
    while time.monotonic() - last_step < PATIENCE_SECONDS:
        time.sleep(0.2)
    os.execv(sys.executable, [sys.executable, *sys.argv])


threading.Thread(target=watch, daemon=True).start()
settings = {"bootstrap.servers": address, "reconnect.backoff.max.ms": 200}


def new_producer():
    producer = Producer(settings | {
        "transactional.id": "copier",
        "transaction.timeout.ms": 60000,
        "linger.ms": 1,
    })
    while True:
        try:
            producer.init_transactions(5)
            return producer
        except KafkaException as error:
            if error.args[0].fatal():
                raise


def tried(step):
    """Does one step again while that may help."""
    while True:
        try:
            return step()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


consumer = Consumer(settings | {
    "group.id": "copiers",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
})
partitions = [TopicPartition(source, partition) for partition in range(PARTITIONS)]


def committed():
    while True:
        try:
            return consumer.committed(partitions, timeout=10)
        except KafkaException:
            pass


def rewind():
    """Reads on from what the group has committed; gives how many lines that is."""
    offsets = committed()
    for known in offsets:
        known.offset = max(known.offset, 0)
    consumer.assign(offsets)
    return sum(known.offset for known in offsets)


producer = new_producer()
commits = aborts = begun_anew = 0
rewind()
done = 0
while done < count:
    last_step = time.monotonic()
    lines = [line for line in consumer.consume(dice.randint(1, 120), 1.0) if not line.error()]
    if not lines:
        done = rewind()
        continue
    try:
        producer.begin_transaction()
        for line in lines:
            while True:
                try:
                    producer.produce(target, line.value(), line.key(), partition=line.partition())
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
        offsets = {}
        for line in lines:
            offsets[line.partition()] = line.offset() + 1
        offsets = [TopicPartition(source, partition, offset) for partition, offset in offsets.items()]
        tried(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 5))
        if dice.randrange(8) == 0:
            tried(lambda: producer.abort_transaction(5))
            aborts += 1
            rewind()
        else:
            tried(lambda: producer.commit_transaction(5))
            commits += 1
            progress.write(f"{commits}\n")
    except KafkaException as error:
        begun_anew += 1
        print(error, file=sys.stderr, flush=True)
        if error.args[0].txn_requires_abort():
            try:
                tried(lambda: producer.abort_transaction(5))
            except KafkaException:
                producer = new_producer()
        else:
            producer = new_producer()
        rewind()
print(f"{commits} committed, {aborts} aborted, {begun_anew} begun anew")
