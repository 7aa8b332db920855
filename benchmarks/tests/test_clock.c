/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "unit.h"

static void test_never_goes_back(void)
{
    int64_t start_ns = clock_now_ns();
    int64_t before_ns = start_ns;

    for (int i = 0; i < 100000; i++) {
        int64_t now_ns = clock_now_ns();

        EXPECT(now_ns >= before_ns);
        before_ns = now_ns;
    }
    EXPECT(before_ns > start_ns);
}

/* As exact after a year as after a second. */
static void test_difference_is_exact(void)
{
    int64_t year_ns = INT64_C(31536000) * 1000000000;

    EXPECT(clock_between_us(0, 2500) == 2.5);
    EXPECT(clock_between_us(year_ns, year_ns + 1) == 0.001);
}

/* Even by a system call, a reading takes no 10 us. */
static void test_overhead_is_plausible(void)
{
    double overhead_ns = clock_overhead_ns();

    EXPECT(overhead_ns > 0.0 && overhead_ns < 10000.0);
}

int main(void)
{
    test_never_goes_back();
    test_difference_is_exact();
    test_overhead_is_plausible();
    return 0;
}
