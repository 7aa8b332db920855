/* SPDX-License-Identifier: Apache-2.0 */
#include "registration.h"

#include "clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool registration_map(const struct registration *what,
                             struct pages *pages, struct fault *fault)
{
    bool is_mapped = what->state == REGISTRATION_UNTOUCHED
                         ? pages_reserve(pages, what->kind, what->size_bytes)
                         : pages_map(pages, what->kind, what->size_bytes);

    return is_mapped ||
           fault_set(fault, CHECK_USAGE,
                     "mmap: %zu bytes: %s (errno %d): choose a smaller size, "
                     "or set aside huge pages (vm.nr_hugepages)",
                     what->size_bytes, strerror(errno), errno);
}

/* Time one registration and its end. */
static bool registration_time(const struct registration *what, char *memory,
                              double *reg_us, double *dereg_us,
                              struct fault *fault)
{
    struct ibv_pd *pd = what->port->pd;
    int64_t start_ns = clock_now_ns();
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, what->size_bytes, MEMORY_ACCESS);
    int64_t middle_ns = clock_now_ns();

    if (mr == NULL) {
        return memory_explain(what->port, what->size_bytes, errno, fault);
    }
    int64_t again_ns = clock_now_ns();
    int status = ibv_dereg_mr(mr);
    int64_t end_ns = clock_now_ns();

    *reg_us = clock_between_us(start_ns, middle_ns);
    *dereg_us = clock_between_us(again_ns, end_ns);
    return status == 0 ||
           fault_set(fault, CHECK_FAILED,
                     "ibv_dereg_mr: %s, %zu bytes: %s (errno %d): see the "
                     "driver's messages in dmesg",
                     what->port->name, what->size_bytes, strerror(status),
                     status);
}

/* Map, time and unmap; where the memory is always the same, only time. */
static bool registration_turn(const struct registration *what,
                              const struct pages *warm, double *reg_us,
                              double *dereg_us, size_t *huge_bytes,
                              struct fault *fault)
{
    struct pages own;

    if (warm != NULL) {
        return registration_time(what, warm->memory, reg_us, dereg_us, fault);
    }
    if (!registration_map(what, &own, fault)) {
        return false;
    }
    bool good = registration_time(what, own.memory, reg_us, dereg_us, fault);
    if (huge_bytes != NULL) {
        *huge_bytes = pages_huge_bytes(&own, what->kind);
    }
    pages_unmap(&own);
    return good;
}

bool registration_loop(const struct registration *what, double clock_us, long n,
                       const struct registration_samples *samples,
                       size_t *huge_bytes, struct fault *fault)
{
    bool is_warm = what->state == REGISTRATION_WARM;
    struct pages warm;
    bool good = true;

    if (is_warm) {
        if (!registration_map(what, &warm, fault)) {
            return false;
        }
        *huge_bytes = pages_huge_bytes(&warm, what->kind);
    }
    for (long i = 0; i < n && good; i++) {
        good = registration_turn(what, is_warm ? &warm : NULL, &samples->reg[i],
                                 &samples->dereg[i],
                                 i + 1 == n ? huge_bytes : NULL, fault);
        samples->reg[i] -= clock_us;
        samples->dereg[i] -= clock_us;
    }
    if (is_warm) {
        pages_unmap(&warm);
    }
    return good;
}

bool registration_validate(const struct registration *what,
                           const struct verbs_settings *settings, bool *valid_p,
                           struct fault *fault)
{
    static const struct link_plan PLAN = {
        .connections = 1, .send_depth = 1, .receive_depth = 1};
    struct port_name name = {.ib_port = what->port->ib_port};
    struct pages pages;
    struct link link;

    (void)snprintf(name.device, sizeof(name.device), "%s",
                   ibv_get_device_name(what->port->context->device));
    if (!pages_map(&pages, what->kind, 2 * what->size_bytes)) {
        return fault_set(fault, CHECK_USAGE,
                         "mmap: %zu bytes to validate: %s (errno %d): choose a "
                         "smaller size",
                         2 * what->size_bytes, strerror(errno), errno);
    }
    bool good = link_create(&link, settings, &name, &PLAN, pages.memory,
                            2 * what->size_bytes, 0, fault) &&
                link_connect(&link, fault);
    if (good) {
        *valid_p = link_validate(&link, IBV_WR_RDMA_WRITE, 0, what->size_bytes,
                                 what->size_bytes);
    }
    link_free(&link);
    pages_unmap(&pages);
    return good;
}

struct stats_line registration_fit(const struct registration_result *results,
                                   size_t count, double page_bytes,
                                   bool is_dereg)
{
    struct stats_line line = {NAN, NAN};

    if (count < 2) {
        return line;
    }
    double *pages = check_allocate(count * sizeof(*pages), "pages");
    double *times = check_allocate(count * sizeof(*times), "medians");
    for (size_t i = 0; i < count; i++) {
        pages[i] = (double)results[i].size_bytes / page_bytes;
        times[i] = is_dereg ? results[i].dereg.p50 : results[i].reg.p50;
    }
    line = stats_fit_line(pages, times, count);
    free(times);
    free(pages);
    return line;
}
