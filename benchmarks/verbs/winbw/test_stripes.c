/* SPDX-License-Identifier: Apache-2.0 */
#include "stripes.h"
#include "unit.h"

#include <stdbool.h>

static const struct stripes_sender SENDERS[] = {
    {.side = 0, .pair = 0, .pairs = 1}, {.side = 1, .pair = 0, .pairs = 1},
    {.side = 0, .pair = 1, .pairs = 2}, {.side = 1, .pair = 1, .pairs = 2},
    {.side = 0, .pair = 2, .pairs = 3},
};

static bool is_whole(struct stripes stripes, int rail, size_t size_bytes)
{
    return stripes.count == 1 && stripes.pieces[0].rail == rail &&
           stripes.pieces[0].offset == 0 &&
           stripes.pieces[0].size_bytes == size_bytes;
}

static void test_single(void)
{
    for (size_t i = 0; i < sizeof(SENDERS) / sizeof(SENDERS[0]); i++) {
        EXPECT(
            is_whole(stripes_cut(STRIPES_SINGLE, 2, 8192, 1 << 20, SENDERS[i]),
                     0, 1 << 20));
    }
}

/* One pair: each node its own; more pairs: each pair its own. */
static void test_bound(void)
{
    static const int RAILS[] = {0, 1, 1, 1, 0};

    for (size_t i = 0; i < sizeof(SENDERS) / sizeof(SENDERS[0]); i++) {
        EXPECT(
            is_whole(stripes_cut(STRIPES_BOUND, 2, 8192, 1 << 20, SENDERS[i]),
                     RAILS[i], 1 << 20));
        EXPECT(
            is_whole(stripes_cut(STRIPES_BOUND, 1, 8192, 9, SENDERS[i]), 0, 9));
    }
}

static void test_striped(size_t size_bytes)
{
    struct stripes stripes =
        stripes_cut(STRIPES_STRIPED, 2, 8192, size_bytes, SENDERS[1]);

    EXPECT(stripes.count == 2);
    EXPECT(stripes.pieces[0].rail == 0 && stripes.pieces[1].rail == 1);
    EXPECT(stripes.pieces[0].offset == 0);
    EXPECT(stripes.pieces[0].size_bytes == size_bytes / 2);
    EXPECT(stripes.pieces[1].offset == size_bytes / 2);
    EXPECT(stripes.pieces[0].size_bytes + stripes.pieces[1].size_bytes ==
           size_bytes);
}

static void test_not_striped(void)
{
    EXPECT(is_whole(stripes_cut(STRIPES_STRIPED, 2, 8192, 8192, SENDERS[0]), 0,
                    8192));
    EXPECT(is_whole(stripes_cut(STRIPES_STRIPED, 1, 8192, 9000, SENDERS[0]), 0,
                    9000));
    /* A byte has no two pieces. */
    EXPECT(is_whole(stripes_cut(STRIPES_STRIPED, 2, 0, 1, SENDERS[0]), 0, 1));
}

int main(void)
{
    test_single();
    test_bound();
    test_striped(8193);
    test_striped(1 << 20);
    test_not_striped();
    return 0;
}
