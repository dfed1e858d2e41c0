"""A disk with a volatile write cache, as a file system (FUSE) that holds one file, `disk`, for a loop device.

What was written since the last flush is kept apart. Writing `off` to the file `power` is a power cut: from then on every
write and flush fails; of what was not flushed each block of 4 KiB is lost, kept, or torn at a sector, by the seed. Writing
`on` lets it be used again.

    volatile_disk.py MOUNT_POINT BACKING_FILE SEED
"""
import errno
import os
import random
import stat
import sys

from fuse import FUSE, FuseOSError, Operations

BLOCK, SECTOR = 4096, 512


class VolatileDisk(Operations):
    def __init__(self, backing, seed):
        self.file = os.open(backing, os.O_RDWR)
        self.bytes = os.fstat(self.file).st_size
        self.random = random.Random(seed)
        self.unflushed = {}
        self.is_on = True

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path in ("/disk", "/power"):
            size = self.bytes if path == "/disk" else 0
            return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": size, "st_blksize": BLOCK}
        raise FuseOSError(errno.ENOENT)

    def readdir(self, path, fh):
        return [".", "..", "disk", "power"]

    def open(self, path, flags):
        return 0

    def truncate(self, path, length, fh=None):
        if path != "/power":
            raise FuseOSError(errno.EPERM)

    def block(self, index):
        found = self.unflushed.get(index)
        return found if found is not None else os.pread(self.file, BLOCK, index * BLOCK)

    def read(self, path, size, offset, fh):
        if path != "/disk":
            return b""
        first, last = offset // BLOCK, -(-(offset + size) // BLOCK)
        if not any(index in self.unflushed for index in range(first, last)):
            return os.pread(self.file, size, offset)
        data = b"".join(bytes(self.block(index)) for index in range(first, last))
        return data[offset - first * BLOCK :][:size]

    def write(self, path, data, offset, fh):
        if path == "/power":
            self.switch(data.strip())
            return len(data)
        if not self.is_on:
            raise FuseOSError(errno.EIO)
        at = 0
        while at < len(data):
            index, within = divmod(offset + at, BLOCK)
            piece = data[at : at + BLOCK - within]
            if len(piece) == BLOCK:
                self.unflushed[index] = piece
            else:
                block = bytearray(self.block(index))
                block[within : within + len(piece)] = piece
                self.unflushed[index] = bytes(block)
            at += len(piece)
        return len(data)

    def fsync(self, path, datasync, fh):
        if not self.is_on:
            raise FuseOSError(errno.EIO)
        self.keep(lambda index, data: data)

    def keep(self, what_stays):
        for index, data in self.unflushed.items():
            staying = what_stays(index, data)
            if staying:
                os.pwrite(self.file, staying, index * BLOCK)
        self.unflushed.clear()

    def switch(self, to):
        self.is_on = to == b"on"
        if to == b"off":
            fate = self.random.random()
            self.keep(lambda index, data: self.after_the_cut(index, data, fate))

    def after_the_cut(self, index, data, share_kept):
        draw = self.random.random()
        if draw < 0.1:
            sectors = self.random.randrange(BLOCK // SECTOR) * SECTOR
            return data[:sectors]
        return data if self.random.random() < share_kept else None


if __name__ == "__main__":
    mount_point, backing, seed = sys.argv[1:4]
    FUSE(VolatileDisk(backing, int(seed)), mount_point, foreground=True, nothreads=True, big_writes=True)
