// SPDX-License-Identifier: GPL-2.0-or-later
#include "usb.h"
#include "clocks.h"
#include "descriptors.h"
#include "registers.h"

/* 4.1.2.5: where things lie in the controller's RAM. */
#define SETUP_PACKET		((const volatile uint8_t *)USB_RAM)
#define ENDPOINT_IN(n)		REGISTER(USB_RAM + 8 * (n))
#define ENDPOINT_OUT(n)		REGISTER(USB_RAM + 8 * (n) + 4)
#define BUFFER_IN(n)		REGISTER(USB_RAM + 0x80 + 8 * (n))
#define BUFFER_OUT(n)		REGISTER(USB_RAM + 0x84 + 8 * (n))
#define CONTROL_AT		0x100u
#define NOTICES_AT		0x180u
#define DATA_OUT_AT		0x1c0u
#define DATA_IN_AT		0x200u
#define BYTES(at)		((volatile uint8_t *)(USB_RAM + (at)))

#define ENDPOINT_ON		(1u << 31 | 1u << 29)
#define ENDPOINT_BULK		(2u << 26)
#define ENDPOINT_INTERRUPT	(3u << 26)
#define BUFFER_FULL		(1u << 15)
#define BUFFER_ODD		(1u << 13)
#define BUFFER_STALL		(1u << 11)
#define BUFFER_GO		(1u << 10)
#define BUFFER_LENGTH		0x3ffu

#define DONE_CONTROL_IN		(1u << 0)
#define DONE_CONTROL_OUT	(1u << 1)
#define DONE_DATA_IN		(1u << (2 * DATA))
#define DONE_DATA_OUT		(1u << (2 * DATA + 1))

#define SIE_SETUP		(1u << 17)
#define SIE_RESET		(1u << 19)
#define SIE_PULLUP		(1u << 16)
#define SIE_CONTROL_INTERRUPT	(1u << 29)

struct setup {
	uint8_t type, request;
	uint16_t value, index, length;
};

static struct {
	const uint8_t *rest;		/* what is still to be sent to a control request */
	uint32_t left;
	bool ends_short;		/* the host asked for more than there is: a short packet has to end it */
	bool is_in;			/* the data of the request go to the host */
	uint8_t address;		/* to be taken when the request is over; 0: none */
	uint8_t configuration;
	bool control_odd, in_odd, out_odd;
	bool is_sending;		/* a packet of data waits for the host */
	bool was_whole;			/* the last one was as long as packets are: the host waits for more */
	uint32_t heard, waiting;	/* bytes of the host's packet: taken, and all */
	bool has_terminal;		/* somebody has opened the device */
} usb;

static uint8_t line_coding[7] = {0x00, 0xc2, 0x01, 0x00, 0, 0, 8};
static uint8_t said[PACKET];

/* 4.1.2.5.1: the controller runs on another clock; what is in the buffer's word has to be there before it may go. */
static void give(volatile uint32_t *buffer, uint32_t word)
{
	*buffer = word;
	for (int i = 0; i < 6; i++)
		__asm__ volatile("nop\n\tnop");
	*buffer = word | BUFFER_GO;
}

static void send_control(void)
{
	uint32_t count = usb.left < PACKET ? usb.left : PACKET;

	for (uint32_t i = 0; i < count; i++)
		BYTES(CONTROL_AT)[i] = usb.rest[i];
	usb.rest += count;
	usb.left -= count;
	if (count < PACKET)
		usb.ends_short = false;
	give(&BUFFER_IN(0), BUFFER_FULL | (usb.control_odd ? BUFFER_ODD : 0) | count);
	usb.control_odd = !usb.control_odd;
}

static void await_control(void)
{
	give(&BUFFER_OUT(0), BUFFER_ODD | PACKET);
}

static void reply(const uint8_t *bytes, uint32_t count, const struct setup *s)
{
	usb.rest = bytes;
	usb.left = count < s->length ? count : s->length;
	usb.ends_short = count < s->length;
	usb.is_in = true;
	send_control();
}

/* The request is carried out, and nothing is to be said. */
static void acknowledge(void)
{
	usb.left = 0;
	usb.is_in = false;
	send_control();
}

static void stall(void)
{
	REGISTER(USB_STALL_ARM) = 3;
	BUFFER_IN(0) = BUFFER_STALL;
	BUFFER_OUT(0) = BUFFER_STALL;
}

static void await_data(void)
{
	give(&BUFFER_OUT(DATA), (usb.out_odd ? BUFFER_ODD : 0) | PACKET);
	usb.out_odd = !usb.out_odd;
}

static void configure(uint8_t configuration)
{
	usb.configuration = configuration;
	ENDPOINT_IN(NOTICES) = ENDPOINT_ON | ENDPOINT_INTERRUPT | NOTICES_AT;
	ENDPOINT_IN(DATA) = ENDPOINT_ON | ENDPOINT_BULK | DATA_IN_AT;
	ENDPOINT_OUT(DATA) = ENDPOINT_ON | ENDPOINT_BULK | DATA_OUT_AT;
	BUFFER_IN(DATA) = 0;
	BUFFER_OUT(DATA) = 0;
	usb.in_odd = usb.out_odd = usb.is_sending = usb.was_whole = false;
	usb.heard = usb.waiting = 0;
	if (configuration)
		await_data();
}

static void describe(const struct setup *s)
{
	uint8_t which = (uint8_t)s->value, count = 2;

	switch (s->value >> 8) {
	case 1:
		reply(device_descriptor, sizeof(device_descriptor), s);
		return;
	case 2:
		reply(configuration_descriptor, sizeof(configuration_descriptor), s);
		return;
	case 3:
		if (!which) {
			reply(languages, sizeof(languages), s);
			return;
		}
		if (which > 2)
			break;
		for (const char *c = strings[which - 1]; *c; c++) {
			said[count++] = (uint8_t)*c;
			said[count++] = 0;
		}
		said[0] = count;
		said[1] = 3;
		reply(said, count, s);
		return;
	}
	stall();
}

/* After a halt is cleared an endpoint begins with an even packet. Nothing here ever halts. */
static void clear_feature(const struct setup *s)
{
	if (s->index == (0x80 | DATA))
		usb.in_odd = false;
	acknowledge();
}

static void standard_request(const struct setup *s)
{
	static const uint8_t zeros[2];

	switch (s->request) {
	case 0:
		reply(zeros, 2, s);
		break;
	case 1:
		clear_feature(s);
		break;
	case 5:
		usb.address = s->value & 0x7f;
		acknowledge();
		break;
	case 6:
		describe(s);
		break;
	case 8:
		reply(&usb.configuration, 1, s);
		break;
	case 9:
		configure((uint8_t)s->value);
		acknowledge();
		break;
	case 10:
		reply(zeros, 1, s);
		break;
	case 11:
		acknowledge();
		break;
	default:
		stall();
	}
}

static void class_request(const struct setup *s, struct generator *g)
{
	switch (s->request) {
	case 0x20:	/* SET_LINE_CODING: seven bytes follow, which mean nothing here */
		usb.is_in = false;
		await_control();
		break;
	case 0x21:
		reply(line_coding, sizeof(line_coding), s);
		break;
	case 0x22:	/* SET_CONTROL_LINE_STATE: bit 0 says whether somebody is there */
		if (usb.has_terminal != (s->value & 1)) {
			usb.has_terminal = s->value & 1;
			generator_reconnected(g);
		}
		acknowledge();
		break;
	case 0x23:	/* SEND_BREAK */
		acknowledge();
		break;
	default:
		stall();
	}
}

static void take_setup(struct generator *g)
{
	const volatile uint8_t *p = SETUP_PACKET;
	struct setup s = {
		p[0], p[1], (uint16_t)(p[2] | p[3] << 8), (uint16_t)(p[4] | p[5] << 8), (uint16_t)(p[6] | p[7] << 8),
	};

	REGISTER(USB_SIE_STATUS) = SIE_SETUP;
	usb.control_odd = true;
	usb.address = 0;
	usb.left = 0;
	usb.ends_short = false;
	switch (s.type & 0x60) {
	case 0x00:
		standard_request(&s);
		break;
	case 0x20:
		class_request(&s, g);
		break;
	default:
		stall();
	}
}

/* A packet of a control request has gone to the host. */
static void control_went(void)
{
	if (usb.address) {
		REGISTER(USB_ADDRESS) = usb.address;
		usb.address = 0;
	}
	if (usb.left || usb.ends_short)
		send_control();
	else if (usb.is_in)
		await_control();
}

/* A packet of a control request has come: data of the host, or its word that all went well. */
static void control_came(void)
{
	if (!usb.is_in)
		acknowledge();
}

static void reset(struct generator *g)
{
	REGISTER(USB_SIE_STATUS) = SIE_RESET;
	REGISTER(USB_ADDRESS) = 0;
	configure(0);
	if (usb.has_terminal)
		generator_reconnected(g);
	usb.has_terminal = false;
}

static void send_data(struct outbox *o)
{
	const uint8_t *bytes;
	uint32_t count = outbox_peek(o, &bytes, PACKET);

	if (usb.is_sending || !usb.configuration || (!count && !usb.was_whole))
		return;
	for (uint32_t i = 0; i < count; i++)
		BYTES(DATA_IN_AT)[i] = bytes[i];
	outbox_taken(o, count);
	usb.is_sending = true;
	usb.was_whole = count == PACKET;
	give(&BUFFER_IN(DATA), BUFFER_FULL | (usb.in_odd ? BUFFER_ODD : 0) | count);
	usb.in_odd = !usb.in_odd;
}

/* The host's packet stays where it is, and the host waits, until all of it has been heard. */
static void hear_data(struct generator *g)
{
	uint8_t bytes[PACKET];
	uint32_t count = usb.waiting - usb.heard;

	for (uint32_t i = 0; i < count; i++)
		bytes[i] = BYTES(DATA_OUT_AT)[usb.heard + i];
	usb.heard += generator_hear(g, bytes, count);
	if (usb.heard < usb.waiting)
		return;
	usb.heard = usb.waiting = 0;
	await_data();
}

void usb_begin(void)
{
	SET_BITS(RESETS_RESET) = RESET_USB;
	release(RESET_USB);
	for (uint32_t at = 0; at < 0x180; at += 4)
		REGISTER(USB_RAM + at) = 0;
	REGISTER(USB_MUXING) = 1u << 0 | 1u << 3;	/* to the chip's own transceiver */
	REGISTER(USB_POWER) = 1u << 2 | 1u << 3;	/* the board lives on the bus, so the bus is there */
	REGISTER(USB_MAIN_CTRL) = 1;
	REGISTER(USB_SIE_CTRL) = SIE_CONTROL_INTERRUPT;
	SET_BITS(USB_SIE_CTRL) = SIE_PULLUP;
}

void usb_turn(struct generator *g)
{
	uint32_t status = REGISTER(USB_SIE_STATUS), done;

	if (status & SIE_RESET)
		reset(g);
	done = REGISTER(USB_BUFFERS);
	if (done) {
		REGISTER(USB_BUFFERS) = done;
		if (done & DONE_CONTROL_IN)
			control_went();
		if (done & DONE_CONTROL_OUT)
			control_came();
		if (done & DONE_DATA_IN)
			usb.is_sending = false;
		if (done & DONE_DATA_OUT) {
			usb.waiting = BUFFER_OUT(DATA) & BUFFER_LENGTH;
			usb.heard = 0;
			if (!usb.waiting)
				await_data();
		}
	}
	if (usb.waiting)
		hear_data(g);
	if (status & SIE_SETUP)
		take_setup(g);
	send_data(&g->outbox);
}
