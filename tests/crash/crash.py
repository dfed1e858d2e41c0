"""Kills a broker under load again and again and checks that nothing it said was taken back.

    crash.py kill  BINARY FOLDER PORT [--rounds 200] [--seed N] [--override KEY=VALUE]…
    crash.py power BINARY FOLDER PORT [--rounds 40] …              (root, FUSE and loop devices)

`kill` ends the process with SIGKILL at a random moment, often while it still starts. `power` cuts the power of the disk
below an ext4 file system as well (`volatile_disk.py`). Producers, with and without idempotence, with small and with large
records, note what was acknowledged, and a consumer notes what it was given. After each crash, and once more over all of it
in the end:
- every offset that was acknowledged or consumed holds the same record as before;
- the records of one idempotent producer are in their order, none twice;
- the broker starts.
That `power` can fail is seen with `--override onrush.durability=os`.
Needs confluent-kafka, and fusepy for `power`. Ends with 1 and says what was found when something is wrong.
"""
import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 6
# Name, whether it is idempotent, bytes of a record, records a second.
PRODUCERS = [("once-small", True, 80, 800), ("once-large", True, 60_000, 60), ("again-small", False, 200, 400), ("again-large", False, 20_000, 60)]


def record(producer, sequence, size):
    head = f"{producer} {sequence} "
    return (head + str(sequence) * (1 + size // len(str(sequence))))[:size].encode()


class Truth:
    """What was said: by (topic, partition), offset → (producer, sequence)."""

    def __init__(self):
        self.lock = threading.Lock()
        self.held = {}
        self.acknowledged = self.consumed = 0
        self.faults = []

    def note(self, source, message):
        producer, sequence, _ = message.value().split(b" ", 2)
        producer, sequence = producer.decode(), int(sequence)
        size = next(p[2] for p in PRODUCERS if p[0] == producer)
        key = (message.topic(), message.partition())
        with self.lock:
            if message.value() != record(producer, sequence, size):
                self.faults.append(f"{source}: {key} offset {message.offset()}: the bytes of {producer} {sequence} have changed")
            held = self.held.setdefault(key, {}).setdefault(message.offset(), (producer, sequence))
            if held != (producer, sequence):
                self.faults.append(f"{source}: {key} offset {message.offset()}: was {held}, is {(producer, sequence)}")
            if source == "acknowledged":
                self.acknowledged += 1
            else:
                self.consumed += 1


class Load:
    def __init__(self, address, truth):
        self.address, self.truth, self.ends = address, truth, threading.Event()
        self.threads = [threading.Thread(target=self.produce, args=p, daemon=True) for p in PRODUCERS]
        self.threads.append(threading.Thread(target=self.consume, daemon=True))

    def start(self):
        for thread in self.threads:
            thread.start()

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(60)

    def produce(self, name, idempotent, size, rate):
        producer = Producer({
            "bootstrap.servers": self.address,
            "acks": "all",
            "enable.idempotence": idempotent,
            "max.in.flight.requests.per.connection": 5 if idempotent else 1,
            "linger.ms": 2,
            "message.timeout.ms": 300_000,
            "message.max.bytes": 1_000_000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "queue.buffering.max.messages": 2000,
            "log_level": 0,
        })

        def delivered(error, message):
            if error:
                if not self.ends.is_set():
                    self.truth.faults.append(f"{name}: {error}")
            else:
                self.truth.note("acknowledged", message)

        sequence, begun = 0, time.monotonic()
        while not self.ends.is_set():
            while sequence < (time.monotonic() - begun) * rate:
                try:
                    producer.produce("once" if idempotent else "again", record(name, sequence, size), partition=sequence % PARTITIONS, on_delivery=delivered)
                    sequence += 1
                except BufferError:
                    # The rate is not made up for: a stall of the broker is not paid back in one go.
                    begun = time.monotonic() - sequence / rate
                    break
            producer.poll(0.005)
        producer.flush(60)

    def consume(self):
        consumer = Consumer({
            "bootstrap.servers": self.address,
            "group.id": "watcher",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "check.crcs": True,
            "log_level": 0,
        })
        consumer.assign([TopicPartition(topic, partition, 0) for topic in ("once", "again") for partition in range(PARTITIONS)])
        while not self.ends.is_set():
            for message in consumer.consume(500, timeout=0.2):
                if not message.error():
                    self.truth.note("consumed", message)
                elif message.error().code() == KafkaError._AUTO_OFFSET_RESET:
                    self.truth.faults.append(f"consumer: what it had been given is gone: {message.error()}")
        consumer.close()


def read(address, starts):
    """All records from `starts`, (topic, partition) → offset, up to the high watermarks: (high watermarks, records)."""
    consumer = Consumer({
        "bootstrap.servers": address,
        "group.id": "checker",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "fetch.wait.max.ms": 10,
        "log_level": 0,
    })
    ends = {key: consumer.get_watermark_offsets(TopicPartition(*key), timeout=60)[1] for key in starts}
    left = {key for key in starts if starts[key] < ends[key]}
    consumer.assign([TopicPartition(*key, starts[key]) for key in left])
    records, quiet_since = {key: [] for key in starts}, time.monotonic()
    while left and time.monotonic() - quiet_since < 60:
        for message in consumer.consume(1000, timeout=1):
            if message.error():
                raise KafkaException(message.error())
            key = (message.topic(), message.partition())
            if message.offset() < ends[key]:
                records[key].append(message)
            if message.offset() + 1 >= ends[key]:
                left.discard(key)
            quiet_since = time.monotonic()
    consumer.close()
    return ends, records


def check(address, truth, starts):
    """Holds what was said against what is read from `starts` on. Returns the high watermarks."""
    with truth.lock:
        said = {key: dict(truth.held.get(key, {})) for key in starts}
    try:
        ends, records = read(address, starts)
    except KafkaException as error:
        truth.faults.append(f"the log cannot be read: {error}")
        return starts
    for key in starts:
        found = {message.offset() for message in records[key]}
        for message in records[key]:
            truth.note("checked", message)
        missing = sorted(offset for offset in said[key] if offset >= starts[key] and offset not in found)
        if missing:
            truth.faults.append(f"{key}: {len(missing)} offsets are gone, the first {missing[0]} {said[key][missing[0]]}, high watermark {ends[key]}")
        last = {}
        for message in records[key] if key[0] == "once" else []:
            producer, sequence, _ = message.value().split(b" ", 2)
            if int(sequence) <= last.get(producer, -1):
                truth.faults.append(f"{key}: {producer} {int(sequence)} at {message.offset()} after {last[producer]}")
            last[producer] = int(sequence)
    return ends


class Broker:
    def __init__(self, binary, folder, port, overrides):
        self.command = [binary, "serve", "--override", f"listeners=PLAINTEXT://127.0.0.1:{port}", "--override", f"log.dirs={folder}"]
        for override in overrides:
            self.command += ["--override", override]
        self.port, self.process = port, None

    def start(self, log):
        self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def ready(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"the broker did not start: exit {self.process.returncode}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise SystemExit("the broker does not listen after 60 s")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Disk:
    """ext4, with a journal, on a loop device on a volatile disk."""

    def __init__(self, folder, seed):
        self.folder, self.image = folder, os.path.join(folder, "image")
        self.fuse, self.mount_point = os.path.join(folder, "fuse"), os.path.join(folder, "mnt")
        for made in (self.fuse, self.mount_point):
            os.makedirs(made, exist_ok=True)
        with open(self.image, "wb") as image:
            image.truncate(4 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image], check=True)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "volatile_disk.py")
        self.server = subprocess.Popen([sys.executable, script, self.fuse, self.image, str(seed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(os.path.join(self.fuse, "power")):
            time.sleep(0.05)
        self.attach()

    def attach(self):
        self.device = subprocess.run(["losetup", "--show", "-f", os.path.join(self.fuse, "disk")], check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run(["mount", "-t", "ext4", self.device, self.mount_point], check=True)

    def detach(self):
        # The kernel lets go of the files of a killed process behind its back when they hang on an io_uring.
        deadline = time.monotonic() + 60
        while subprocess.run(["umount", self.mount_point], stderr=subprocess.DEVNULL).returncode != 0:
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.mount_point} is still in use 60 s after the broker was killed")
            time.sleep(0.02)
        subprocess.run(["losetup", "-d", self.device], check=True)

    def power(self, word):
        with open(os.path.join(self.fuse, "power"), "w") as power:
            power.write(word)

    def end(self):
        subprocess.run(["umount", "--lazy", self.mount_point], stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "-d", self.device], stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "--lazy", self.fuse], stderr=subprocess.DEVNULL)
        self.server.kill()
        self.server.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("mode", choices=["kill", "power"])
    arguments.add_argument("binary")
    arguments.add_argument("folder")
    arguments.add_argument("port", type=int)
    arguments.add_argument("--rounds", type=int)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments.add_argument("--override", action="append", default=[])
    given = arguments.parse_args()
    rounds = given.rounds or (200 if given.mode == "kill" else 40)
    chance = random.Random(given.seed)
    print(f"seed {given.seed}, {rounds} rounds", flush=True)
    os.makedirs(given.folder, exist_ok=True)
    disk = Disk(given.folder, given.seed) if given.mode == "power" else None
    data = os.path.join(disk.mount_point if disk else given.folder, "data")
    # Small segments, so that crashes fall on rolls as well.
    broker = Broker(given.binary, data, given.port, ["log.segment.bytes=4194304", *given.override])
    log = open(os.path.join(given.folder, "broker.log"), "ab")
    try:
        torment(given, rounds, chance, broker, disk, log)
    finally:
        if broker.process and broker.process.poll() is None:
            broker.kill()
        if disk:
            disk.end()


def torment(given, rounds, chance, broker, disk, log):
    address, truth = f"127.0.0.1:{given.port}", Truth()
    broker.start(log)
    broker.ready()
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    created = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in ("once", "again")])
    for future in created.values():
        future.result(30)
    beginnings = {(topic, partition): 0 for topic in ("once", "again") for partition in range(PARTITIONS)}
    load, ends, killed_while_starting = Load(address, truth), beginnings, 0
    load.start()
    for round in range(1, rounds + 1):
        time.sleep(chance.uniform(0.1, 1.5))
        while True:
            if disk:
                disk.power("off")
            broker.kill()
            if disk:
                disk.detach()
                disk.power("on")
                disk.attach()
            broker.start(log)
            if chance.random() < 0.75:
                break
            # Once more while it starts.
            time.sleep(chance.uniform(0, 0.15))
            killed_while_starting += 1
        broker.ready()
        # What has come since the last check, and some of what stood before.
        ends = check(address, truth, {key: max(0, end - 500) for key, end in ends.items()})
        if truth.faults or round % 10 == 0 or round == rounds:
            print(f"round {round}: {truth.acknowledged} acknowledged, {truth.consumed} read, {killed_while_starting} killed while starting", flush=True)
        if truth.faults:
            break
    load.end()
    if not truth.faults:
        check(address, truth, beginnings)
    broker.process.terminate()
    broker.process.wait(60)
    for fault in truth.faults[:20]:
        print(f"FAULT {fault}")
    print(f"{len(truth.faults)} faults, {rounds if not truth.faults else round} crashes, {killed_while_starting} more while starting, {truth.acknowledged} records acknowledged")
    sys.exit(bool(truth.faults))


if __name__ == "__main__":
    main()
