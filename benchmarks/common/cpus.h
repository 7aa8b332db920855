/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_CPUS_H
#define SEATRIAL_CPUS_H

#include <stdbool.h>
#include <stddef.h>

enum { CPUS_MAX = 4096 };

/** CPUs by their numbers, in the order of the list. */
struct cpus {
    int numbers[CPUS_MAX];
    size_t count;
};

/**
 * Read a list such as 0,2,8-15. False unless it is one: numbers below CPUS_MAX,
 * none of them twice.
 */
bool cpus_parse(const char *text, struct cpus *cpus);

/**
 * List the first CPU of each core that this process may use. Where the kernel
 * does not tell cores, each CPU is one.
 */
void cpus_of_cores(struct cpus *cpus);

enum { CPUS_TEXT_SIZE = 8192 };

/** Write a list of the CPUs that are marked, such as 0,2,8-15. */
void cpus_format(const bool marked[CPUS_MAX], char text[CPUS_TEXT_SIZE]);

#endif
