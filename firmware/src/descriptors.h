/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the device says of itself (USB 2.0, 9.6; CDC 1.2, 5.2 and PSTN 1.2, 5.3). */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdint.h>

#define PACKET		64
#define NOTICES		1	/* endpoint of notifications, of which none is ever sent */
#define DATA		2	/* endpoints of the bytes, in and out */

static const uint8_t device_descriptor[] = {
	18, 1, 0x00, 0x02,		/* USB 2.0 */
	2, 0, 0, PACKET,		/* communications */
	0x09, 0x12, 0x01, 0x00,		/* pid.codes, its number for devices that are not sold */
	0x00, 0x01, 1, 2, 0, 1,
};

static const uint8_t configuration_descriptor[] = {
	9, 2, 67, 0, 2, 1, 0, 0x80, 50,		/* two interfaces, 100 mA from the bus */
	9, 4, 0, 0, 1, 2, 2, 0, 0,		/* communications: abstract control model */
	5, 0x24, 0, 0x20, 0x01,			/* header: CDC 1.20 */
	5, 0x24, 1, 0, 1,			/* call management: none */
	4, 0x24, 2, 2,				/* line coding and line state */
	5, 0x24, 6, 0, 1,			/* union of interfaces 0 and 1 */
	7, 5, 0x80 | NOTICES, 3, 8, 0, 255,	/* interrupt in */
	9, 4, 1, 0, 2, 10, 0, 0, 0,		/* data */
	7, 5, DATA, 2, PACKET, 0, 0,		/* bulk out */
	7, 5, 0x80 | DATA, 2, PACKET, 0, 0,	/* bulk in */
};

static const uint8_t languages[] = {4, 3, 0x09, 0x04};
static const char *const strings[] = {"onset", "onset generator"};

#endif
