/* SPDX-License-Identifier: Apache-2.0 */
/* The timed loops of p2p.c. */
#ifndef SEATRIAL_P2P_LOOPS_H
#define SEATRIAL_P2P_LOOPS_H

#include "p2p.h"

enum { P2P_TAG = 1, P2P_ACK_TAG, P2P_BUDGET_TAG };

/** By enum p2p_test. */
extern const p2p_loop P2P_LOOPS[];

#endif
