// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints what a program in C makes of onset_wire.h: the records that golden/events.txt has, too, and numbers. */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "onset_wire.h"

static void print_record(const char *name, struct onset_record record)
{
	unsigned char bytes[sizeof(record)];
	size_t i;

	memcpy(bytes, &record, sizeof(record));
	printf("%s: ", name);
	for (i = 0; i < sizeof(bytes); i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

int main(void)
{
	print_record("sample", (struct onset_record) {
		.kind		= ONSET_SAMPLE,
		.pin		= htole32(ONSET_TASK),
		.number		= htole64(0x2122232425262728),
		.due_ns		= htole64(0x0102030405060708),
		.latency_ns	= htole64(0x1112131415161718),
	});
	print_record("loss", (struct onset_record) {
		.kind		= ONSET_LOSS,
		.loss		= ONSET_DROPPED,
		.pin		= htole32(ONSET_TASKLET),
		.number		= htole64(0x2122232425262728),
	});
	printf("responders %d losses %d\n", ONSET_RESPONDERS, ONSET_LOSSES);
	printf("port %#x irq %d disturbance %#x timers %d\n", ONSET_PORT, ONSET_PORT_IRQ,
	       ONSET_DISTURBANCE_PORT, ONSET_DISTURBANCE_TIMERS);
	printf("%s %#x\n", ONSET_DEVICE, ONSET_ANSWER);
	printf("%s %#x\n", ONSET_SAMPLES, ONSET_STOP);
	return 0;
}
