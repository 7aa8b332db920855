/* SPDX-License-Identifier: Apache-2.0 */
#include "chase.h"
#include "unit.h"

#include <string.h>

static struct chase make(size_t slots, size_t stride)
{
    struct chase chase = {
        .memory = calloc(slots, stride), .stride = stride, .slots = slots};

    EXPECT(chase.memory != NULL);
    chase_link(&chase);
    return chase;
}

/* Every slot is reached once before the first comes again. */
static void test_one_cycle(size_t slots, size_t stride)
{
    struct chase chase = make(slots, stride);
    char *seen = calloc(slots, 1);
    void **slot = (void **)(void *)chase.memory;

    EXPECT(seen != NULL);
    for (size_t i = 0; i < slots; i++) {
        size_t index = (size_t)((char *)slot - chase.memory) / stride;

        EXPECT(index < slots && !seen[index]);
        seen[index] = 1;
        slot = *slot;
    }
    EXPECT(slot == (void **)(void *)chase.memory);
    EXPECT(chase_cycle(&chase) == slots);
    free(seen);
    free(chase.memory);
}

/* Of 1000 neighbours hardly one follows the other: half of two do. */
static void test_order_is_random(void)
{
    enum { SLOTS = 1000, STRIDE = 64 };
    struct chase chase = make(SLOTS, STRIDE);
    size_t neighbours = 0;

    for (size_t i = 0; i + 1 < SLOTS; i++) {
        void **slot = (void **)(void *)(chase.memory + i * STRIDE);

        neighbours += *slot == (void *)(chase.memory + (i + 1) * STRIDE);
    }
    EXPECT(neighbours < 10);
    free(chase.memory);
}

static void test_walk_ends_where_single_loads_do(void)
{
    struct chase chase = make(37, 16);
    void **slot = (void **)(void *)chase.memory;

    for (int i = 0; i < 5 * CHASE_UNROLL; i++) {
        slot = *slot;
    }
    EXPECT(chase_walk(chase.memory, (size_t)5 * CHASE_UNROLL) == (void *)slot);
    EXPECT(chase_walk(chase.memory, 0) == chase.memory);
    free(chase.memory);
}

/* Links that skip a slot, end in a smaller cycle, or leave the memory. */
static void test_wrong_cycles_are_found(void)
{
    struct chase chase = make(100, 64);
    void **first = (void **)(void *)chase.memory;
    void **second = *first;
    void **third = *second;

    *first = third;
    EXPECT(chase_cycle(&chase) == 99);
    *first = second;
    *third = second;
    EXPECT(chase_cycle(&chase) == 0);
    *third = chase.memory + 1;
    EXPECT(chase_cycle(&chase) == 0);
    *third = chase.memory + 6400;
    EXPECT(chase_cycle(&chase) == 0);
    free(chase.memory);
}

static void test_times_are_of_single_loads(void)
{
    enum { COUNT = 50 };
    struct chase chase = make(64, 64);
    double samples_ns[COUNT];
    int plausible = 0;

    memset(samples_ns, 0, sizeof(samples_ns));
    chase_time(&chase, 4096, samples_ns, COUNT);
    for (int i = 0; i < COUNT; i++) {
        plausible += samples_ns[i] > 0.1 && samples_ns[i] < 1000.0;
    }
    EXPECT(plausible > COUNT / 2);
    free(chase.memory);
}

int main(void)
{
    test_one_cycle(2, 8);
    test_one_cycle(3, 64);
    test_one_cycle(1000, 64);
    test_one_cycle(65536, 24);
    test_order_is_random();
    test_walk_ends_where_single_loads_do();
    test_wrong_cycles_are_found();
    test_times_are_of_single_loads();
    return 0;
}
