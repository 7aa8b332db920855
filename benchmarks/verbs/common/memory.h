/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_MEMORY_H
#define SEATRIAL_MEMORY_H

#include "port.h"

/** What the other side may do with registered memory. */
enum {
    MEMORY_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                    IBV_ACCESS_REMOTE_READ,
};

/**
 * Register memory. NULL, with the reason in fault, if it fails; it names the
 * limit of locked memory, if that is the cause, and how to raise it.
 */
struct ibv_mr *memory_register(const struct port *port, void *memory,
                               size_t size_bytes, struct fault *fault);

/** Write why ibv_reg_mr failed with this errno. Return false. */
bool memory_explain(const struct port *port, size_t size_bytes, int error,
                    struct fault *fault);

#endif
