// SPDX-License-Identifier: GPL-2.0-or-later
#include "clocks.h"
#include "usb.h"

static struct generator generator;

int main(void)
{
	clocks_begin();
	board_begin();
	generator_begin(&generator);
	usb_begin();
	for (;;) {
		usb_turn(&generator);
		generator_turn(&generator);
	}
}
