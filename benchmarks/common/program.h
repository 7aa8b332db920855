/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PROGRAM_H
#define SEATRIAL_PROGRAM_H

#include "check.h"
#include "options.h"

#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_SETTINGS_SIZE = 1024 };

/** A benchmark: its settings begin with struct settings_common. */
struct program {
    const char *name;
    const char *purpose;
    const struct options_row *options;
    const void *defaults;
    size_t settings_size; /* at most PROGRAM_SETTINGS_SIZE */
    /** Refuse what contradicts itself: false, and why. May be NULL. */
    bool (*verify)(const void *settings, char error[OPTIONS_ERROR_SIZE]);
    /** Prepare the process before MPI starts. May be NULL. */
    void (*prepare)(const void *settings);
    /** Everything between MPI_Init and MPI_Finalize. */
    enum check_exit (*run)(const struct program *program, const void *settings);
};

/** Be this program: read the command line, start MPI, run, end MPI. */
int program_main(const struct program *program, int argc, char **argv);

#endif
