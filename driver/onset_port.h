/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process needs to be the `task` responder of onset_port.
 *
 * read() of ONSET_DEVICE waits for the next interrupt and gives the number
 * of interrupts taken since the module was loaded, as a 64-bit unsigned
 * integer in host byte order. ONSET_ANSWER is the answer. poll() reports
 * POLLIN when read() would not wait. One open file at a time.
 */
#ifndef ONSET_PORT_H
#define ONSET_PORT_H

#include <linux/ioctl.h>

#define ONSET_DEVICE	"/dev/onset"

/*
 * Toggles the pin of `task`, once for all the interrupts taken and not yet
 * answered; does nothing when there is none. No argument; returns 0.
 */
#define ONSET_ANSWER	_IO('O', 0x70)

#endif /* ONSET_PORT_H */
