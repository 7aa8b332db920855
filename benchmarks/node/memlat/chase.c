/* SPDX-License-Identifier: Apache-2.0 */
#include "chase.h"

#include "clock.h"

#include <stdint.h>

static void **chase_slot(const struct chase *chase, size_t index)
{
    return (void **)(void *)(chase->memory + index * chase->stride);
}

/* Vigna's splitmix64, reduced to less than a bound of at most 2^32. */
static size_t chase_draw(uint64_t *state, size_t bound)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(((z ^ (z >> 31)) >> 32) * bound >> 32);
}

/*
 * Sattolo's shuffle leaves one cycle: S. Sattolo, "An algorithm to generate a
 * random cyclic permutation", Inf. Process. Lett. 22 (1986).
 */
void chase_link(const struct chase *chase)
{
    uint64_t state = chase->slots;

    for (size_t i = 0; i < chase->slots; i++) {
        *chase_slot(chase, i) = chase_slot(chase, i);
    }
    for (size_t i = chase->slots - 1; i > 0; i--) {
        void **one = chase_slot(chase, i);
        void **other = chase_slot(chase, chase_draw(&state, i));
        void *next = *one;

        *one = *other;
        *other = next;
    }
#ifdef PLANT_CORRUPTION
    void **first = chase_slot(chase, 0);
    *first = *(void **)*first;
#endif
}

void *chase_walk(void *start, size_t loads)
{
    void **slot = start;

    for (size_t i = 0; i < loads; i += CHASE_UNROLL) {
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
        slot = *slot;
    }
    return slot;
}

void chase_time(const struct chase *chase, size_t loads, double samples_ns[],
                size_t count)
{
    double overhead_ns = clock_overhead_ns();
    void *slot = chase->memory;

    for (size_t i = 0; i < count; i++) {
        int64_t start_ns = clock_now_ns();
        slot = chase_walk(slot, loads);
        int64_t end_ns = clock_now_ns();

        samples_ns[i] = ((double)(end_ns - start_ns) - overhead_ns) / loads;
    }
}

size_t chase_cycle(const struct chase *chase)
{
    uintptr_t start = (uintptr_t)chase->memory;
    void **slot = chase_slot(chase, 0);

    for (size_t loads = 1; loads <= chase->slots; loads++) {
        uintptr_t offset = (uintptr_t)*slot - start;

        if (offset >= chase->slots * chase->stride || offset % chase->stride) {
            return 0;
        }
        slot = *slot;
        if (offset == 0) {
            return loads;
        }
    }
    return 0;
}
