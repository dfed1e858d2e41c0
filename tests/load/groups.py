#!/usr/bin/env python3
"""Groups with very many members: how long until each has its share, what that costs, and who else waits meanwhile.

    groups.py HOST:PORT --groups 1 --members 2000 [--protocol consumer|classic] [--partitions 2000] [--pid PID]

All members join at once; they beat for a while; then each leaves and comes back, --wave at a time. A phase ends when every
partition of the topic has one owner in each group, all have as many, and every member is in the same epoch or generation. Beside it a connection
of its own asks for ApiVersions, one request at a time: its longest wait is what the longest turn of a core does to others.
With --pid the processor time of that process is told. It needs Python 3.9 and nothing else, and speaks to any Kafka endpoint.
"""

import argparse
import asyncio
import os
import struct
import time
import uuid

HEARTBEAT, LEAVE_GROUP, JOIN_GROUP, SYNC_GROUP = 12, 13, 11, 14
API_VERSIONS, CREATE_TOPICS, METADATA, FIND_COORDINATOR = 18, 19, 3, 10
CONSUMER_GROUP_HEARTBEAT = 68
FLEXIBLE = {CONSUMER_GROUP_HEARTBEAT, METADATA}
RETRIABLE = {7, 14, 15, 16, 36}
SESSION_MS, REBALANCE_MS = 45_000, 300_000


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values[0]

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def string(self):
        length = self.take(">h")
        return None if length < 0 else self.bytes(length).decode()

    def compact_string(self):
        length = self.varint()
        return None if length == 0 else self.bytes(length - 1).decode()

    def array(self, item):
        return [item() for _ in range(max(self.take(">i"), 0))]

    def compact_array(self, item):
        return [item() for _ in range(max(self.varint() - 1, 0))]

    def tags(self):
        for _ in range(self.varint()):
            self.varint()
            self.bytes(self.varint())


def text(value):
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def blob(value):
    return struct.pack(">i", len(value)) + value


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def compact(value):
    return b"\0" if value is None else varint(len(value) + 1) + value.encode()


def compact_array(items):
    return b"\0" if items is None else varint(len(items) + 1) + b"".join(items)


class Connection:
    """One request at a time."""

    def __init__(self, host, port):
        self.host, self.port, self.reader, self.correlation = host, port, None, 0

    async def call(self, key, version, body):
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        self.correlation += 1
        header = struct.pack(">hhi", key, version, self.correlation) + text("groups")
        header += b"\0" if key in FLEXIBLE else b""
        self.writer.write(struct.pack(">i", len(header) + len(body)) + header + body)
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        reader = Reader(await self.reader.readexactly(size))
        assert reader.take(">i") == self.correlation
        if key in FLEXIBLE:
            reader.tags()
        return reader

    def close(self):
        if self.reader is not None:
            self.writer.close()
            self.reader = None


class Member:
    def __init__(self, scene, group):
        self.scene, self.group = scene, group
        self.connection = Connection(scene.host, scene.port)
        self.owned, self.epoch, self.task, self.stays = frozenset(), 0, None, True
        self.requests = 0

    def start(self):
        self.stays = True
        self.task = asyncio.create_task(self.live())

    async def stop(self):
        self.stays = False
        self.wake.set()
        await self.task

    async def live(self):
        self.wake = asyncio.Event()
        try:
            await (self.consumer() if self.scene.options.protocol == "consumer" else self.classic())
        finally:
            self.owned, self.epoch = frozenset(), 0
            self.connection.close()

    async def rest(self, seconds):
        try:
            await asyncio.wait_for(self.wake.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    async def call(self, key, version, body):
        self.requests += 1
        return await self.connection.call(key, version, body)

    # The consumer protocol.

    async def consumer(self):
        self.name = str(uuid.uuid4())
        epoch, said = 0, None
        while self.stays:
            # As the Java client: in full to join, and what it owns only once that has changed.
            body = await self.report(epoch, joins=epoch == 0, owned=None if self.owned == said and epoch else self.owned)
            said = self.owned
            _throttle, error = body.take(">i"), body.take(">h")
            body.compact_string(), body.compact_string()
            if error:
                if error not in RETRIABLE:
                    epoch, self.owned, said = 0, frozenset(), None
                await self.rest(0.1)
                continue
            epoch, interval = body.take(">i"), body.take(">i")
            before = self.owned
            if body.take(">b") >= 0:
                def topic():
                    body.bytes(16)
                    partitions = body.compact_array(lambda: body.take(">i"))
                    body.tags()
                    return partitions
                self.owned = frozenset(p for of_topic in body.compact_array(topic) for p in of_topic)
            self.epoch = epoch
            # What it gives up it acknowledges at once.
            if not before - self.owned:
                await self.rest(interval / 1000)
        await self.report(-1, joins=False, owned=None)

    async def report(self, epoch, joins, owned):
        topics = compact_array([compact(self.scene.topic)]) if joins else b"\0"
        if owned is None:
            owns = b"\0"
        elif owned:
            of_topic = [struct.pack(">i", partition) for partition in sorted(owned)]
            owns = compact_array([self.scene.topic_id + compact_array(of_topic) + b"\0"])
        else:
            owns = compact_array([])
        body = compact(self.group) + compact(self.name) + struct.pack(">i", epoch) + b"\0\0"
        body += struct.pack(">i", REBALANCE_MS if joins else -1) + topics + b"\0\0" + owns + b"\0"
        return await self.call(CONSUMER_GROUP_HEARTBEAT, 1, body)

    # The classic protocol, eager.

    async def classic(self):
        name = ""
        subscription = struct.pack(">h", 0) + array([text(self.scene.topic)]) + struct.pack(">i", -1)
        while self.stays:
            body = text(self.group) + struct.pack(">ii", SESSION_MS, REBALANCE_MS) + text(name) + text(None)
            body += text("consumer") + array([text("range") + blob(subscription)])
            answer = await self.call(JOIN_GROUP, 5, body)
            _throttle, error, generation = answer.take(">i"), answer.take(">h"), answer.take(">i")
            answer.string()
            leader, name = answer.string(), answer.string()
            if error:
                name = "" if error == 25 else name
                await self.rest(0 if error == 79 else 0.1)
                continue
            members = answer.array(lambda: (answer.string(), answer.string(), answer.bytes(answer.take(">i")))[0])
            body = text(self.group) + struct.pack(">i", generation) + text(name) + text(None)
            answer = await self.call(SYNC_GROUP, 3, body + array(self.shares(members) if leader == name else []))
            if (answer.take(">i"), answer.take(">h"))[1]:
                continue
            assignment = Reader(answer.bytes(answer.take(">i")))
            assignment.take(">h")
            of_topics = assignment.array(lambda: (assignment.string(), assignment.array(lambda: assignment.take(">i")))[1])
            self.owned, self.epoch = frozenset(p for of_topic in of_topics for p in of_topic), generation
            while self.stays:
                await self.rest(3)
                body = text(self.group) + struct.pack(">i", generation) + text(name) + text(None)
                answer = await self.call(HEARTBEAT, 3, body)
                if (answer.take(">i"), answer.take(">h"))[1]:
                    self.owned = frozenset()
                    break
        if name:
            await self.call(LEAVE_GROUP, 1, text(self.group) + text(name))

    def shares(self, members):
        count = self.scene.options.partitions
        def share(index):
            mine = [struct.pack(">i", p) for p in range(index, count, len(members))]
            return struct.pack(">h", 0) + array([text(self.scene.topic) + array(mine)]) + struct.pack(">i", -1)
        return [text(member) + blob(share(index)) for index, member in enumerate(sorted(members))]


class Scene:
    def __init__(self, options):
        self.options = options
        host, port = options.bootstrap.rsplit(":", 1)
        self.host, self.port = host, int(port)
        self.topic = f"load-{uuid.uuid4().hex[:8]}"
        self.waits = []

    async def make_topic(self):
        connection = Connection(self.host, self.port)
        topic = text(self.topic) + struct.pack(">ih", self.options.partitions, 1) + array([]) + array([])
        await connection.call(CREATE_TOPICS, 4, array([topic]) + struct.pack(">i?", 30_000, False))
        self.topic_id = None
        while self.topic_id is None:
            await asyncio.sleep(0.1)
            self.topic_id = await self.find_topic_id(connection)
        while True:
            answer = await connection.call(FIND_COORDINATOR, 1, text("warm") + b"\0")
            if (answer.take(">i"), answer.take(">h"))[1] == 0:
                break
            await asyncio.sleep(0.2)
        connection.close()

    async def find_topic_id(self, connection):
        body = compact_array([bytes(16) + compact(self.topic) + b"\0"]) + b"\0\0\0"
        answer = await connection.call(METADATA, 12, body)
        answer.take(">i")
        def broker():
            answer.take(">i"), answer.compact_string(), answer.take(">i"), answer.compact_string(), answer.tags()
        answer.compact_array(broker)
        answer.compact_string(), answer.take(">i")
        if answer.varint() != 2 or answer.take(">h"):
            return None
        answer.compact_string()
        return answer.bytes(16)

    async def probe(self):
        """Asks one thing after the other; keeps how long each took."""
        connection = Connection(self.host, self.port)
        while True:
            began = time.monotonic()
            await connection.call(API_VERSIONS, 0, b"")
            self.waits.append(time.monotonic() - began)
            await asyncio.sleep(0.005)

    def settled(self):
        for members in self.groups:
            owned = [partition for member in members for partition in member.owned]
            if len(owned) != self.options.partitions or len(set(owned)) != len(owned):
                return False
            shares = [len(member.owned) for member in members]
            if max(shares) - min(shares) > 1 or len({member.epoch for member in members}) != 1:
                return False
        return True

    def processor_seconds(self):
        if not self.options.pid:
            return float("nan")
        with open(f"/proc/{self.options.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def phase(self, name, work):
        self.waits.clear()
        members = [member for group in self.groups for member in group]
        requests = sum(member.requests for member in members)
        began, processor = time.monotonic(), self.processor_seconds()
        await work()
        seconds, processor = time.monotonic() - began, self.processor_seconds() - processor
        requests = sum(member.requests for member in members) - requests
        waits = sorted(self.waits) or [float("nan")]
        print(
            f"{name:16} {seconds:7.1f} s  processor {processor:7.2f} s  requests {requests:7}  "
            f"others wait p50 {waits[len(waits) // 2] * 1e3:6.1f}  p99 {waits[len(waits) * 99 // 100] * 1e3:6.1f}  "
            f"max {waits[-1] * 1e3:6.1f} ms",
            flush=True,
        )

    async def until_settled(self):
        deadline = time.monotonic() + self.options.patience
        while not self.settled():
            if time.monotonic() > deadline:
                owned = [len({p for m in g for p in m.owned}) for g in self.groups]
                epochs = [len({m.epoch for m in g}) for g in self.groups]
                raise SystemExit(f"not settled in {self.options.patience} s: {owned[:5]} owned, {epochs[:5]} epochs")
            await asyncio.sleep(0.05)

    async def run(self):
        await self.make_topic()
        options = self.options
        self.groups = [
            [Member(self, f"{self.topic}-{group}") for _ in range(options.members)] for group in range(options.groups)
        ]
        probing = asyncio.create_task(self.probe())
        members = [member for group in self.groups for member in group]

        async def join():
            for member in members:
                member.start()
            await self.until_settled()

        async def restart():
            # One of each group, then the next of each.
            in_turn = [member for several in zip(*self.groups) for member in several]
            for first in range(0, len(in_turn), options.wave):
                wave = in_turn[first : first + options.wave]
                await asyncio.gather(*(member.stop() for member in wave))
                for member in wave:
                    member.start()
                await asyncio.sleep(options.pause)
            await self.until_settled()

        await self.phase("join", join)
        await self.phase("at rest", lambda: asyncio.sleep(options.rest))
        await self.phase("rolling restart", restart)
        await self.phase("at rest", lambda: asyncio.sleep(options.rest))

        async def leave():
            await asyncio.gather(*(member.stop() for member in members))

        await self.phase("leave", leave)
        probing.cancel()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bootstrap")
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--members", type=int, default=2000)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--protocol", choices=["consumer", "classic"], default="consumer")
    parser.add_argument("--wave", type=int, default=100, help="how many restart at a time")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between waves")
    parser.add_argument("--rest", type=float, default=10, help="seconds at rest")
    parser.add_argument("--patience", type=float, default=180, help="seconds until a phase has failed")
    parser.add_argument("--pid", type=int)
    asyncio.run(Scene(parser.parse_args()).run())


if __name__ == "__main__":
    main()
