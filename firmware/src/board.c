// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The line and the capture. PIO does both, and DMA moves its words between its FIFOs and rings in the RAM. The
 * processor fills one ring and empties two, at its leisure.
 */
#include "board.h"
#include "clocks.h"
#include "programs.h"
#include "registers.h"

/* Words of the rings. An event is six looks in two words, and a count in one. */
#define LOOKS_BITS	13u
#define COUNTS_BITS	12u
#define LEVELS_BITS	8u
#define LOOKS		(1u << LOOKS_BITS)
#define COUNTS		(1u << COUNTS_BITS)
#define LEVELS		(1u << LEVELS_BITS)
#define LOOKS_A_COUNT	6u
/* More events than these, and the processor is behind. What is on its way may bring ten for each of 112 triggers. */
#define EVENTS_MOST	512u

/* After what was put lie so many words that keep the line low for 17 s each: what the DMA comes to where nothing more
 * was put in time. It fetches nine words ahead (eight in the FIFO, one in the machine). */
#define GUARDS		16u
#define GUARD		0xfffffffeu

/* A channel counts its transfers. A second one renews the count when it is used up, after hours. Tests use fewer. */
#ifndef TRANSFERS_BITS
#define TRANSFERS_BITS	30u
#endif
#define TRANSFERS	(1u << TRANSFERS_BITS)

enum channel { LOOK_CHANNEL, COUNT_CHANNEL, LINE_CHANNEL, RENEW_LOOK, RENEW_COUNT, RENEW_LINE, CHANNELS };

static uint32_t looks[LOOKS] __attribute__((section(".rings.looks"), aligned(4 * LOOKS)));
static uint32_t counts[COUNTS] __attribute__((section(".rings.counts"), aligned(4 * COUNTS)));
static uint32_t levels[LEVELS] __attribute__((section(".rings.levels"), aligned(4 * LEVELS)));
static const uint32_t transfers = TRANSFERS;

/* Words that a channel has moved since board_prepare, modulo 2^32. */
static uint32_t moved[3];
/* Events that were taken, and words of the line that were put, modulo 2^32. */
static uint32_t taken, put;
/* The looks of the event that is being told: the next one, their levels, and the count of the first. */
static uint32_t look, look_levels[LOOKS_A_COUNT];
static uint64_t count;
static uint32_t level_before;
static bool has_overrun, is_line_going;
/* Microseconds at board_prepare. */
static uint64_t began;

static uint32_t machine(uint32_t which, uint32_t register_)
{
	return PIO_MACHINE(which) + register_;
}

static void execute(uint32_t which, uint32_t instruction)
{
	REGISTER(machine(which, PIO_INSTR)) = instruction;
}

static void set_up_machine(uint32_t which, uint32_t begin, uint32_t end, uint32_t exec, uint32_t shift, uint32_t pins)
{
	REGISTER(machine(which, PIO_CLKDIV)) = 1u << 16;
	REGISTER(machine(which, PIO_EXECCTRL)) = exec | begin << 7 | end << 12;
	REGISTER(machine(which, PIO_SHIFTCTRL)) = shift;
	REGISTER(machine(which, PIO_PINCTRL)) = pins;
}

#define AUTOPUSH	(1u << 16)
#define AUTOPULL	(1u << 17)
#define SHIFT_OUT_RIGHT	(1u << 19)
#define PUSH_AT(bits)	((bits) << 20)
#define JOIN_TX		(1u << 30)
#define JOIN_RX		(1u << 31)
#define LINE_SHIFT	(AUTOPULL | SHIFT_OUT_RIGHT | JOIN_TX)

static void set_up_machines(void)
{
	for (uint32_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		REGISTER(PIO_MEMORY(i)) = programs[i];
	/* set: the link; side-set: the link */
	set_up_machine(LOOK, LOOK_BEGIN, LOOK_END, 0, AUTOPUSH | PUSH_AT(30u) | JOIN_RX,
		       PIN_LINK << 5 | PIN_LINK << 10 | PIN_ANSWERS << 15 | 1u << 26 | 1u << 29);
	set_up_machine(COUNTER, COUNT_BEGIN, COUNT_END, PIN_LINK << 24, JOIN_RX, 0);
	/* out and set: the line */
	set_up_machine(LINE, LINE_BEGIN, LINE_END, 0, LINE_SHIFT, PIN_LINE | PIN_LINE << 5 | 1u << 20 | 1u << 26);
	execute(LOOK, SET_PINDIRS_OUT);
	execute(LINE, MOV_PINS_ZERO);
	execute(LINE, SET_PINDIRS_OUT);
}

static void set_up_pins(void)
{
	for (uint32_t pin = 0; pin < PINS; pin++) {
		bool is_answer = pin >= PIN_ANSWERS && pin < PIN_ANSWERS + LOOK_PINS;
		bool is_output = pin == PIN_LINE || pin == PIN_LINK;

		if (is_output)
			REGISTER(PAD(pin)) = PAD_INPUT | PAD_SCHMITT | PAD_DRIVE_8MA;
		else if (is_answer)
			REGISTER(PAD(pin)) = PAD_INPUT | PAD_SCHMITT | PAD_PULL_DOWN | PAD_NO_OUTPUT;
		else
			/* LOOK compares all pins of the chip: those that mean nothing are deaf. */
			REGISTER(PAD(pin)) = PAD_PULL_DOWN | PAD_NO_OUTPUT;
		REGISTER(IO_CTRL(pin)) = is_output ? IO_FUNCTION_PIO0 : IO_FUNCTION_NONE;
	}
}

void board_begin(void)
{
	release(RESET_DMA | RESET_IO_BANK0 | RESET_PADS_BANK0 | RESET_PIO0);
	REGISTER(BUS_PRIORITY) = BUS_PRIORITY_DMA;
	set_up_pins();
	set_up_machines();
}

/* A channel, and the one that renews its count. */
static void set_up_channel(uint32_t channel, uint32_t from, uint32_t to, uint32_t ctrl)
{
	uint32_t renew = channel + RENEW_LOOK;

	REGISTER(DMA(renew) + DMA_READ) = (uint32_t)(uintptr_t)&transfers;
	REGISTER(DMA(renew) + DMA_WRITE) = DMA(channel) + DMA_COUNT_TRIGGER;
	REGISTER(DMA(renew) + DMA_COUNT) = 1;
	REGISTER(DMA(renew) + DMA_CTRL) = DMA_EN | DMA_WORDS | DMA_CHAIN(renew) | DMA_PACE(DMA_UNPACED) | DMA_QUIET;
	REGISTER(DMA(channel) + DMA_READ) = from;
	REGISTER(DMA(channel) + DMA_WRITE) = to;
	REGISTER(DMA(channel) + DMA_COUNT) = TRANSFERS;
	REGISTER(DMA(channel) + DMA_CTRL_TRIGGER) = DMA_EN | DMA_WORDS | DMA_CHAIN(renew) | DMA_QUIET | ctrl;
	moved[channel] = 0;
}

static void stop_channel(uint32_t channel)
{
	REGISTER(DMA(channel) + DMA_CTRL) = DMA_CHAIN(channel);
	REGISTER(DMA_ABORT) = 1u << channel;
	while (REGISTER(DMA(channel) + DMA_CTRL) & DMA_BUSY)
		;
}

/*
 * Words that the channel has moved so far. A word that is counted may still be on its way to the RAM: DMA goes before
 * the processor on the bus, so it is there before the processor reads it. Before board_go the line's channel still has
 * the count of the last run.
 */
static uint32_t count_moved(uint32_t channel)
{
	uint32_t done = TRANSFERS - REGISTER(DMA(channel) + DMA_COUNT);

	if (channel == LINE_CHANNEL && !is_line_going)
		return 0;
	moved[channel] += (done - moved[channel]) & (TRANSFERS - 1);
	return moved[channel];
}

/* The machine stands at the beginning of its program, with nothing in its FIFOs and shift registers. */
static void rewind(uint32_t which, uint32_t begin)
{
	while (!(REGISTER(PIO_FSTAT) & PIO_RX_EMPTY(which)))
		(void)REGISTER(PIO_RX(which));
	while (!(REGISTER(PIO_FSTAT) & PIO_TX_EMPTY(which)))
		execute(which, PULL_NOBLOCK);
	SET_BITS(PIO_CTRL) = PIO_RESTART(1u << which);
	execute(which, JUMP(begin));
}

void board_halt(void)
{
	is_line_going = false;
	stop_channel(RENEW_LINE);
	stop_channel(LINE_CHANNEL);
	CLEAR_BITS(PIO_CTRL) = 1u << LINE;
	/* With autopull a PULL does nothing while the shift register is full, and an OUT waits while there is no word. */
	REGISTER(machine(LINE, PIO_SHIFTCTRL)) = LINE_SHIFT & ~AUTOPULL;
	rewind(LINE, LINE_BEGIN);
	execute(LINE, OUT_NULL_32);
	REGISTER(machine(LINE, PIO_SHIFTCTRL)) = LINE_SHIFT;
	execute(LINE, MOV_PINS_ZERO);
}

uint32_t board_prepare(void)
{
	board_halt();
	CLEAR_BITS(PIO_CTRL) = 1u << LOOK | 1u << COUNTER;
	for (uint32_t channel = LOOK_CHANNEL; channel <= COUNT_CHANNEL; channel++) {
		stop_channel(channel + RENEW_LOOK);
		stop_channel(channel);
	}
	rewind(LOOK, LOOK_BEGIN);
	rewind(COUNTER, COUNT_END);
	execute(LOOK, MOV_X_PINS);
	execute(LOOK, MOV_ISR_X);
	execute(LOOK, PUSH_NOBLOCK);
	level_before = REGISTER(PIO_RX(LOOK)) & ((1u << LOOK_PINS) - 1);
	execute(COUNTER, MOV_X_ONES);
	REGISTER(PIO_FDEBUG) = PIO_RX_STALLED(LOOK) | PIO_RX_STALLED(COUNTER);
	set_up_channel(LOOK_CHANNEL, PIO_RX(LOOK), (uint32_t)(uintptr_t)looks,
		       DMA_INCR_WRITE | DMA_RING_WRITE(LOOKS_BITS + 2) | DMA_PACE(DMA_REQUEST_RX(LOOK)));
	set_up_channel(COUNT_CHANNEL, PIO_RX(COUNTER), (uint32_t)(uintptr_t)counts,
		       DMA_INCR_WRITE | DMA_RING_WRITE(COUNTS_BITS + 2) | DMA_PACE(DMA_REQUEST_RX(COUNTER)));
	for (uint32_t i = 0; i < LEVELS; i++)
		levels[i] = GUARD;
	taken = put = moved[LINE_CHANNEL] = 0;
	look = LOOKS_A_COUNT;
	has_overrun = false;
	began = microseconds();
	/* In the same cycle: the looks of one and the count of the other keep their distance for ever. */
	SET_BITS(PIO_CTRL) = 1u << LOOK | 1u << COUNTER;
	return level_before;
}

uint32_t board_room(void)
{
	return LEVELS - 2 * GUARDS - (put - count_moved(LINE_CHANNEL));
}

void board_put(bool is_high, uint32_t ticks)
{
	levels[put % LEVELS] = is_high | (ticks - LINE_CYCLES) << 1;
	levels[(put + GUARDS) % LEVELS] = GUARD;
	put++;
}

void board_go(void)
{
	set_up_channel(LINE_CHANNEL, (uint32_t)(uintptr_t)levels, PIO_TX(LINE),
		       DMA_INCR_READ | DMA_RING_READ(LEVELS_BITS + 2) | DMA_PACE(DMA_REQUEST_TX(LINE)));
	SET_BITS(PIO_CTRL) = 1u << LINE;
	is_line_going = true;
}

bool board_ran_dry(void)
{
	return (int32_t)(count_moved(LINE_CHANNEL) - put) > 0;
}

/* Events that wait. */
static uint32_t waiting(void)
{
	uint32_t by_looks = count_moved(LOOK_CHANNEL) / 2 - (taken & (UINT32_MAX >> 1));
	uint32_t by_counts = count_moved(COUNT_CHANNEL) - taken;

	by_looks &= UINT32_MAX >> 1;
	if (by_counts > COUNTS || by_looks > LOOKS / 2)
		has_overrun = true;
	return by_looks < by_counts ? by_looks : by_counts;
}

bool board_is_behind(void)
{
	return waiting() > EVENTS_MOST;
}

bool board_overran(void)
{
	if (REGISTER(PIO_FDEBUG) & (PIO_RX_STALLED(LOOK) | PIO_RX_STALLED(COUNTER)))
		has_overrun = true;
	return has_overrun;
}

/*
 * The count of 32 bits, in units of two ticks, becomes one of 64 by the timer, which is of the same crystal. An event
 * is taken within 34 s of its time, or the rings would have overrun long before.
 */
static uint64_t widen(uint32_t units)
{
	uint64_t about = board_now() / 2;

	return about + (int32_t)(units - (uint32_t)about);
}

/* Takes the next event. COUNT counts once in the four cycles of a hit, so each event before makes one more. */
static void take_event(void)
{
	const uint32_t *two = &looks[2 * taken % LOOKS];
	uint32_t mask = (1u << LOOK_PINS) - 1;

	/* programs.h has the order. */
	look_levels[1] = two[0] >> 20 & mask;
	look_levels[0] = two[0] >> 10 & mask;
	look_levels[2] = two[0] & mask;
	look_levels[3] = two[1] >> 20 & mask;
	look_levels[4] = two[1] >> 10 & mask;
	look_levels[5] = two[1] & mask;
	count = widen(~counts[taken % COUNTS] + taken);
	look = 0;
	taken++;
}

bool board_sample(struct sample *sample)
{
	for (;;) {
		if (look == LOOKS_A_COUNT) {
			if (!waiting() || has_overrun)
				return false;
			take_event();
		}
		while (look < LOOKS_A_COUNT) {
			uint32_t level = look_levels[look++];

			if (level == level_before)
				continue;
			level_before = level;
			sample->level = level;
			sample->at = 2 * (count + look - 1);
			return true;
		}
	}
}

uint64_t board_now(void)
{
	return (microseconds() - began) * TICKS_A_MICRO;
}
