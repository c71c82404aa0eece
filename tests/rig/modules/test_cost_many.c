// SPDX-License-Identifier: GPL-2.0-or-later
/* 600 turns in each getppid: test_cost.h. */
#define TURNS 600
#include "test_cost.h"
