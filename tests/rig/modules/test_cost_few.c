// SPDX-License-Identifier: GPL-2.0-or-later
/* 100 turns in each getppid: test_cost.h. */
#define TURNS 100
#include "test_cost.h"
