/* SPDX-License-Identifier: Apache-2.0 */
#include "sequence.h"
#include "unit.h"

#include <math.h>

/* Every buffer has a turn, in order, and the share of re-use is met. */
static void test_share(size_t buffers, int reuse_percent)
{
    struct sequence sequence;
    size_t turns = 0;

    sequence_create(buffers, reuse_percent, &sequence);
    EXPECT(sequence.length == sequence_length(buffers, reuse_percent));
    for (size_t i = 0; i < sequence.length; i++) {
        if (sequence.buffers[i] == turns) {
            turns++;
        } else {
            EXPECT(sequence.buffers[i] == 0);
        }
    }
    EXPECT(turns == buffers);
    EXPECT(sequence_used(&sequence, sequence.length) == buffers);
    EXPECT(sequence_used(&sequence, 10 * sequence.length) == buffers);
    double share = 100.0 * (1.0 - (double)buffers / (double)sequence.length);
    EXPECT(fabs(share - reuse_percent) < 0.5);
    sequence_free(&sequence);
}

/* Any run of 100 messages in a row has its share, give or take two. */
static void test_share_is_even(int reuse_percent)
{
    enum { RUN = 100 };
    struct sequence sequence;

    sequence_create(1024, reuse_percent, &sequence);
    for (size_t start = 1; start + RUN <= sequence.length; start++) {
        int reused = 0;

        for (size_t i = start; i < start + RUN; i++) {
            reused += sequence.buffers[i] == 0;
        }
        EXPECT(abs(reused - reuse_percent) <= 2);
    }
    sequence_free(&sequence);
}

static void test_full_reuse_is_one_message(void)
{
    struct sequence sequence;

    sequence_create(1024, 100, &sequence);
    EXPECT(sequence.length == 1 && sequence.buffers[0] == 0);
    EXPECT(sequence_used(&sequence, 1000) == 1);
    sequence_free(&sequence);
}

static void test_short_run_uses_fewer(void)
{
    struct sequence sequence;

    sequence_create(1024, 0, &sequence);
    EXPECT(sequence_used(&sequence, 0) == 0);
    EXPECT(sequence_used(&sequence, 1) == 1);
    EXPECT(sequence_used(&sequence, 1000) == 1000);
    sequence_free(&sequence);
}

int main(void)
{
    static const int SHARES[] = {0, 25, 50, 75, 99};

    for (size_t i = 0; i < sizeof(SHARES) / sizeof(SHARES[0]); i++) {
        test_share(1024, SHARES[i]);
        test_share_is_even(SHARES[i]);
    }
    test_share(1, 0);
    test_full_reuse_is_one_message();
    test_short_run_uses_fewer();
    return 0;
}
