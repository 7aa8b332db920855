/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_RUN_SWEEP_H
#define SEATRIAL_RUN_SWEEP_H

#include "check.h"
#include "sweep.h"

/** Read the files of pairs and of a resumed run, measure, write the end. */
enum check_exit run_sweep(struct sweep *sweep);

#endif
