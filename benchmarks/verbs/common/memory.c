/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

bool memory_explain(const struct port *port, size_t size_bytes, int error,
                    struct fault *fault)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_reg_mr: %s, %zu bytes: %s (errno %d): the limit "
                         "of locked memory is %llu KiB: raise it to unlimited "
                         "(memlock in /etc/security/limits.conf, "
                         "LimitMEMLOCK=infinity of slurmd.service, ulimit -l)",
                         port->name, size_bytes, strerror(error), error,
                         (unsigned long long)limit.rlim_cur / 1024);
    }
    return fault_set(fault, CHECK_USAGE,
                     "ibv_reg_mr: %s, %zu bytes: %s (errno %d): choose a "
                     "smaller size; the device takes up to %llu bytes and %d "
                     "regions",
                     port->name, size_bytes, strerror(error), error,
                     (unsigned long long)port->device.max_mr_size,
                     port->device.max_mr);
}

struct ibv_mr *memory_register(const struct port *port, void *memory,
                               size_t size_bytes, struct fault *fault)
{
    struct ibv_mr *mr = ibv_reg_mr(port->pd, memory, size_bytes, MEMORY_ACCESS);

    if (mr == NULL) {
        (void)memory_explain(port, size_bytes, errno, fault);
    }
    return mr;
}
