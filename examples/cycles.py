#!/usr/bin/python3 -ISEB
# SPDX-License-Identifier: GPL-2.0-or-later
# A control loop of 1 ms that reports its cycles (docs/own-program.md).
import mmap
import os
import struct
import time

PERIOD_NS = 1_000_000
page = mmap.mmap(int(os.environ["ONSET_CYCLES"]), 0)
(capacity,) = struct.unpack_from("<Q", page, 8)
number, release = 0, time.monotonic_ns() + PERIOD_NS
while True:
    time.sleep(max(0, release - time.monotonic_ns()) / 1e9)
    start = time.monotonic_ns()
    # The work comes here.
    place = 64 + 32 * (number % capacity)
    struct.pack_into("<4Q", page, place, number, release, start, time.monotonic_ns())
    number, release = number + 1, release + PERIOD_NS
    struct.pack_into("<Q", page, 0, number)
