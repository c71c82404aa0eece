#!/usr/bin/python3 -ISEB
# SPDX-License-Identifier: GPL-2.0-or-later
# A program that answers triggers as the responder task (docs/own-program.md).
import fcntl
import os

ANSWER = 0x4F70  # ONSET_ANSWER of driver/onset_wire.h: _IO('O', 0x70)
onset = os.open("/dev/onset", os.O_RDWR)
while len(os.read(onset, 8)) == 8:
    # The work comes here.
    fcntl.ioctl(onset, ANSWER)
