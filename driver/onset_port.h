/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process needs to be the `task` responder of onset_port and to read
 * the module's samples. Also the device of the virtual rig that disturbs. The
 * names are defined in onset_wire.h.
 */
#ifndef ONSET_PORT_H
#define ONSET_PORT_H

#include "onset_wire.h"

/*
 * read() of ONSET_DEVICE waits for the next trigger and gives the number
 * of triggers taken since the module was loaded, as a 64-bit unsigned
 * integer in host byte order. ONSET_ANSWER is the answer. poll() reports
 * POLLIN when read() would not wait. One open file at a time.
 *
 * ONSET_ANSWER answers for `task`, once for all the triggers taken and not yet
 * answered. It does nothing when there is none. No argument; returns 0.
 *
 * ONSET_SAMPLES is there with trigger=timer. The timer runs from open() to
 * close() or ONSET_STOP. read() gives as many whole records (struct
 * onset_record) as fit and there are, and waits for the first. One open file
 * at a time. ONSET_SPURIOUS cannot be among the losses: a responder with
 * nothing to answer does not answer. ONSET_DROPPED counts triggers for whose
 * samples the ring had no room, because nobody read for so long.
 *
 * ONSET_STOP stops the timer. After that, read() gives what is left, then the
 * triggers that are not answered by then, and then 0. So give the responders
 * time before reading. No argument; returns 0.
 *
 * ONSET_DISTURBANCE_PORT is the register of the rig's second device, 8 bits.
 * Reading it acknowledges the device's interrupt and gives how many timers to
 * start. All of them expire ONSET_DISTURBANCE_BURST_NS later. It reads as 0,
 * too, when there was no interrupt.
 */
#define ONSET_DISTURBANCE_BURST_NS	20000

#endif /* ONSET_PORT_H */
