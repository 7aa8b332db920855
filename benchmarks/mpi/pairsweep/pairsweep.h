/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAIRSWEEP_H
#define SEATRIAL_PAIRSWEEP_H

#include "settings.h"

/** The options of the program. */
struct settings {
    struct settings_common common; /* sizes: of latency, and of bandwidth */
    long window;
    long windows;
    long seed;
    const char *output;
    const char *resume;
    const char *pairs;
    struct options_span rounds; /* from 1 */
    long quiet_pairs;
    long retest;
    long suspect_percent;
    const char *rails;
    const char *rail_variable;
    long pair_limit_s;
    bool preflight;
    long gid_index; /* of pairsweep_verbs; -1: chosen by gid_choose */
    bool rdma_cm;   /* the same */
    long pretend_ppn;
};

#endif
