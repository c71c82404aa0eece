/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A serial device on USB (CDC ACM, full speed). Nothing interrupts: usb_turn looks what the controller has done. */
#ifndef USB_H
#define USB_H

#include "generator.h"

void usb_begin(void);
void usb_turn(struct generator *g);

#endif
