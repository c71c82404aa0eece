// SPDX-License-Identifier: GPL-2.0-or-later
#include "clocks.h"
#include "registers.h"

#define XOSC_STABLE	(1u << 31)
#define PLL_LOCKED	(1u << 31)
#define PLL_POWER_DOWN	(1u << 0)
#define PLL_VCO_DOWN	(1u << 5)
#define PLL_POSTDIV_DOWN	(1u << 3)

void release(uint32_t parts)
{
	CLEAR_BITS(RESETS_RESET) = parts;
	while ((REGISTER(RESETS_DONE) & parts) != parts)
		;
}

/* 12 MHz · feedback / (first · second). */
static void start_pll(uint32_t pll, uint32_t part, uint32_t feedback, uint32_t first, uint32_t second)
{
	SET_BITS(RESETS_RESET) = part;
	release(part);
	REGISTER(pll + PLL_CS) = 1;
	REGISTER(pll + PLL_FBDIV) = feedback;
	CLEAR_BITS(pll + PLL_PWR) = PLL_POWER_DOWN | PLL_VCO_DOWN;
	while (!(REGISTER(pll + PLL_CS) & PLL_LOCKED))
		;
	REGISTER(pll + PLL_PRIM) = first << 16 | second << 12;
	CLEAR_BITS(pll + PLL_PWR) = PLL_POSTDIV_DOWN;
}

void clocks_begin(void)
{
	REGISTER(CLOCK_SYS_RESUS_CTRL) = 0;
	REGISTER(XOSC_CTRL) = 0xaa0;		/* 1 … 15 MHz */
	REGISTER(XOSC_STARTUP) = 47;		/* 1 ms: 12 MHz / 1000 / 256 */
	SET_BITS(XOSC_CTRL) = 0xfabu << 12;	/* on */
	while (!(REGISTER(XOSC_STATUS) & XOSC_STABLE))
		;
	/* Off the PLLs before they are reset: clk_sys from clk_ref, clk_ref from the crystal. */
	CLEAR_BITS(CLOCK_SYS_CTRL) = 1;
	while (REGISTER(CLOCK_SYS_SELECTED) != 1)
		;
	REGISTER(CLOCK_REF_CTRL) = 2;
	while (REGISTER(CLOCK_REF_SELECTED) != 1u << 2)
		;
	start_pll(PLL_SYS, RESET_PLL_SYS, 125, 6, 2);	/* 1500 MHz / 12 */
	start_pll(PLL_USB, RESET_PLL_USB, 100, 5, 5);	/* 1200 MHz / 25 */
	REGISTER(CLOCK_SYS_CTRL) = 0;			/* the other source is pll_sys … */
	SET_BITS(CLOCK_SYS_CTRL) = 1;			/* … and it is taken */
	while (REGISTER(CLOCK_SYS_SELECTED) != 2)
		;
	REGISTER(CLOCK_USB_CTRL) = 1u << 11;		/* pll_usb, on */
	REGISTER(WATCHDOG_TICK) = 1u << 9 | 12;		/* 12 cycles of clk_ref are a microsecond */
	release(RESET_TIMER);
}

uint64_t microseconds(void)
{
	uint32_t high, low;

	do {
		high = REGISTER(TIMER_HIGH);
		low = REGISTER(TIMER_LOW);
	} while (REGISTER(TIMER_HIGH) != high);
	return (uint64_t)high << 32 | low;
}
