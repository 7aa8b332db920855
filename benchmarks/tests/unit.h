/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_UNIT_H
#define SEATRIAL_UNIT_H

#include <stdio.h>
#include <stdlib.h>

#ifdef NDEBUG
#error "assertions are part of what is tested"
#endif

/** Expect a condition to hold; otherwise say where it does not and fail. */
#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition)) {                                                    \
            (void)fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__,  \
                          #condition);                                         \
            exit(EXIT_FAILURE);                                                \
        }                                                                      \
    } while (0)

#endif
