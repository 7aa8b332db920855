/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <math.h>

size_t plan_size_bytes(int nodes)
{
    return (size_t)nodes * (2 * sizeof(float) + sizeof(int) + 1);
}

void plan_create(struct plan *plan, int nodes, int own, int rail, void *room)
{
    float *numbers = room;
    int *rounds = (int *)(numbers + 2 * (size_t)nodes);

    *plan = (struct plan){
        .nodes = nodes,
        .own = own,
        .rail = rail,
        .latency_us = numbers,
        .bw_mb_per_s = numbers + nodes,
        .flags = (unsigned char *)(rounds + nodes),
        .round = rounds,
    };
    for (int i = 0; i < nodes; i++) {
        plan->flags[i] = 0;
        plan->round[i] = 0;
        plan->latency_us[i] = NAN;
        plan->bw_mb_per_s[i] = NAN;
    }
}

static unsigned char plan_flag(enum record_kind kind)
{
    return (unsigned char)(1U << kind);
}

bool plan_is(const struct plan *plan, int partner, enum record_kind kind)
{
    return (plan->flags[partner] & plan_flag(kind)) != 0;
}

void plan_want_all(struct plan *plan)
{
    for (int i = 0; i < plan->nodes; i++) {
        plan->flags[i] |= i != plan->own ? plan_flag(RECORD_WANTED) : 0;
    }
}

void plan_unwant(struct plan *plan, int partner)
{
    plan->flags[partner] &= (unsigned char)~plan_flag(RECORD_WANTED);
}

void plan_keep(struct plan *plan, const struct record *record)
{
    int partner = record->source == plan->own        ? record->destination
                  : record->destination == plan->own ? record->source
                                                     : -1;

    if (partner < 0 || partner == plan->own ||
        (record->kind != RECORD_WANTED && record->rail != plan->rail)) {
        return;
    }
    plan->flags[partner] |= plan_flag((enum record_kind)record->kind);
    if (record->kind == RECORD_WANTED) {
        plan->round[partner] = record->round;
    }
    if (record->kind == RECORD_DONE) {
        plan->latency_us[partner] = record->latency_us;
        plan->bw_mb_per_s[partner] = record->bw_mb_per_s;
    }
}

bool plan_is_pending(const struct plan *plan, int partner)
{
    return plan_is(plan, partner, RECORD_WANTED) &&
           !plan_is(plan, partner, RECORD_DONE);
}

bool plan_is_source(const struct plan *plan, int partner)
{
    return plan->own < partner;
}
