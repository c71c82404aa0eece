// SPDX-License-Identifier: GPL-2.0-or-later
/* What the compiler calls where it copies and clears structures. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);

void *memcpy(void *to, const void *from, size_t bytes)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if (!(((uintptr_t)to | (uintptr_t)from) & 3))
		for (; bytes >= 4; bytes -= 4, t += 4, f += 4)
			*(uint32_t *)(void *)t = *(const uint32_t *)(const void *)f;
	while (bytes--)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int value, size_t bytes)
{
	uint8_t *t = to;

	while (bytes--)
		*t++ = (uint8_t)value;
	return to;
}
