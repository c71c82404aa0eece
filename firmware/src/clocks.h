/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CLOCKS_H
#define CLOCKS_H

#include <stdint.h>

/* The processor and PIO at 125 MHz, USB at 48 MHz, a timer of microseconds: all of one crystal of 12 MHz. */
void clocks_begin(void);
/* Takes parts out of their reset. */
void release(uint32_t parts);
/* Microseconds since clocks_begin. */
uint64_t microseconds(void);

#endif
