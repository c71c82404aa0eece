// SPDX-License-Identifier: GPL-2.0-or-later
// A program that answers triggers as the responder task (docs/own-program.md). Build it:
// gcc -O2 -I driver examples/answer.c
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "onset_port.h"

int main(void)
{
	uint64_t triggers;
	int onset = open(ONSET_DEVICE, O_RDWR);

	mlockall(MCL_CURRENT | MCL_FUTURE);
	while (read(onset, &triggers, sizeof triggers) == sizeof triggers) {
		/* The work comes here. */
		ioctl(onset, ONSET_ANSWER);
	}
	return 1;
}
