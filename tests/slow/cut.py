# SPDX-License-Identifier: GPL-2.0-or-later
"""What a disk holds after its machine lost power.

usage: cut.py IMAGE LOG SEED

IMAGE is the disk as it was before the boot, LOG what QEMU's driver blklogwrites wrote of the guest's writes, in the format
of the kernel's dm-log-writes (Documentation/admin-guide/device-mapper/log-writes.rst). All writes before the guest's last
flush are on the disk. Of those after it the disk may have any: a quarter of the cuts lose all, a quarter none, and half
lose each with even odds, and of each fourth that is kept some sectors. IMAGE becomes that disk. Prints how many writes
there were, how many were not flushed, how many of these are lost, and how many are torn.
"""

import random
import struct
import sys

MAGIC = 0x6A736677736872
FLUSH, DISCARD = 1, 4


def entries(log):
    """Each write of the log: the first sector, its bytes, whether it is a flush; and the bytes of a sector. The log of a guest
    that has written nothing is empty."""
    head = log.read(28)
    if not head:
        return [], 512
    magic, version, count, size = struct.unpack("<QQQI", head)
    if (magic, version) != (MAGIC, 1):
        sys.exit("cut.py: that is no log of writes")
    at, found = size, []
    for _ in range(count):
        log.seek(at)
        head = log.read(32)
        if len(head) < 32:
            break
        sector, sectors, flags, _ = struct.unpack("<QQQQ", head)
        if flags & DISCARD:
            sys.exit("cut.py: the guest discards, which this does not know")
        log.seek(at + size)
        found.append((sector, log.read(sectors * size), bool(flags & FLUSH)))
        at += (1 + sectors) * size
    return found, size


def main(image, log, seed):
    with open(log, "rb") as file:
        found, size = entries(file)
    dice = random.Random(seed)
    durable = max((at + 1 for at, (_, _, is_flush) in enumerate(found) if is_flush), default=0)
    odds = dice.choice([0.0, 1.0, 0.5, 0.5])
    unflushed = lost = torn = 0
    with open(image, "r+b") as disk:
        for at, (sector, data, _) in enumerate(found):
            kept = range(0, len(data), size)
            if at >= durable and data:
                unflushed += 1
                if dice.random() >= odds:
                    lost += 1
                    continue
                if odds < 1 and len(data) > size and dice.random() < 0.25:
                    torn += 1
                    kept = [offset for offset in kept if dice.random() < 0.5]
            for offset in kept:
                disk.seek(sector * size + offset)
                disk.write(data[offset : offset + size])
    print(len(found), unflushed, lost, torn)


main(*sys.argv[1:])
