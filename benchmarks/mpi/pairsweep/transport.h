/* SPDX-License-Identifier: Apache-2.0 */
/* What carries the messages of pairs: MPI, or verbs in pairsweep_verbs. */
#ifndef SEATRIAL_TRANSPORT_H
#define SEATRIAL_TRANSPORT_H

#include "pair.h"

/** Bytes that a rank takes besides the messages of MPI. */
double transport_size_bytes(const struct settings *settings);

/** Set the loops of bench->p2p, once; free what that took. */
void transport_create(struct pair_bench *bench);
void transport_free(struct pair_bench *bench);

/** Connect both ends of the pair by a rail; abort if that fails. */
void transport_connect(struct pair_bench *bench, int rail);
void transport_disconnect(struct pair_bench *bench);

#endif
