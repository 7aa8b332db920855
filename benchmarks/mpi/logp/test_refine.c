/* SPDX-License-Identifier: Apache-2.0 */
#include "refine.h"
#include "unit.h"

/* Points at 1, 2 and 4 KiB with values that are exact, or known to +- half. */
static void set(struct logp_point points[3], double os, double or, double g,
                double half)
{
    for (int i = 0; i < 3; i++) {
        double size = 1024 << i;

        points[i] = (struct logp_point){
            .size_bytes = 1024 << i,
            .os = {.p50 = 1.0 + 0.001 * size, .half = half},
            .or = {.p50 = 2.0 + 0.002 * size, .half = half},
            .g = {.p50 = 0.003 * size - 1.0, .half = half},
        };
    }
    points[2].os.p50 *= os;
    points[2].or.p50 *= or ;
    points[2].g.p50 *= g;
}

static bool has_jump(double os, double or, double g, double half)
{
    struct logp_point points[3];

    set(points, os, or, g, half);
    return refine_has_jump(points);
}

static void test_jumps(void)
{
    EXPECT(!has_jump(1.0, 1.0, 1.0, 0.0));
    EXPECT(!has_jump(1.19, 0.81, 1.19, 0.0));
    EXPECT(has_jump(1.21, 1.0, 1.0, 0.0));
    EXPECT(has_jump(1.0, 0.79, 1.0, 0.0));
    EXPECT(has_jump(1.0, 1.0, 1.21, 0.0));
    /* os is 5.1: 25 % of it are 1.3, and 1.02 + 6 x 0.05 are allowed. */
    EXPECT(has_jump(1.25, 1.0, 1.0, 0.0));
    EXPECT(!has_jump(1.25, 1.0, 1.0, 0.05));
}

static void test_middle(void)
{
    EXPECT(refine_middle(0, 1 << 20) == 1 << 19);
    EXPECT(refine_middle(1024, 2048) == 1536);
    EXPECT(refine_middle(64, 128) == 96);
    EXPECT(refine_middle(64, 127) == 0);
    EXPECT(refine_middle(1 << 20, (1 << 20) + (1 << 16)) == 0);
    EXPECT(refine_middle(1 << 29, 1 << 30) == 3 << 28);
}

int main(void)
{
    test_jumps();
    test_middle();
    return 0;
}
