/* SPDX-License-Identifier: Apache-2.0 */
#include "cpus.h"
#include "unit.h"
#include "work.h"

#include <math.h>

static void test_same_work_gives_the_same_number(void)
{
    EXPECT(work_quantum(100000) == work_quantum(100000));
    EXPECT(work_quantum(100000) != work_quantum(100001));
    EXPECT(work_quantum(0) == 0.1 + 0.2 + 0.30000000000000004 + 0.4 + 0.5 +
                                  0.6 + 0.7000000000000001 + 0.8);
}

static void test_run_ends_in_time(void)
{
    enum { CAPACITY = 100000 };
    double *end_ns = calloc(CAPACITY, sizeof(*end_ns));
    double *results = calloc(CAPACITY, sizeof(*results));
    struct work work = {.iterations = 1000,
                        .limit_ns = 20000000,
                        .capacity = CAPACITY,
                        .end_ns = end_ns,
                        .results = results};

    EXPECT(end_ns != NULL && results != NULL);
    work_run(&work);
    EXPECT(work.count >= 1 && work.count <= CAPACITY);
    EXPECT(work.end_ns[work.count - 1] >= 20e6 || work.count == CAPACITY);
    EXPECT(work.count == 1 || work.end_ns[work.count - 2] < 20e6);
    EXPECT(work.cpu_ns > 0.0);
    work.capacity = 3;
    work_run(&work);
    EXPECT(work.count <= 3);
    work.limit_ns = 0;
    work_run(&work);
    EXPECT(work.count == 1);
    free(end_ns);
    free(results);
}

/* Ten quanta in the first second, and five in the next. */
static void test_rates_of_parts(void)
{
    double end_ns[15];
    struct work work = {.end_ns = end_ns, .count = 15};

    for (int i = 0; i < 10; i++) {
        end_ns[i] = 1e8 * (i + 1);
    }
    for (int i = 0; i < 5; i++) {
        end_ns[10 + i] = 1e9 + 2e8 * (i + 1);
    }
    EXPECT(fabs(work_rate(&work, 0, 2) - 10.0) < 1e-9);
    EXPECT(fabs(work_rate(&work, 1, 2) - 5.0) < 1e-9);
    EXPECT(fabs(work_rate(&work, 0, 1) - 7.5) < 1e-9);
    EXPECT(fabs(work_rate(&work, 3, 4) - 5.0) < 1e-9);
}

/* A quantum that a stop holds up spreads over the parts that it goes on in. */
static void test_long_quantum_counts_with_its_share(void)
{
    double end_ns[] = {1e9, 4e9};
    struct work work = {.end_ns = end_ns, .count = 2};

    EXPECT(fabs(work_rate(&work, 0, 4) - 1.0) < 1e-9);
    EXPECT(fabs(work_rate(&work, 3, 4) - 1.0 / 3.0) < 1e-9);
}

static void test_lists_of_cpus(void)
{
    static const char *const WRONG[] = {"",
                                        "x",
                                        "1,",
                                        ",1",
                                        "1-",
                                        "3-1",
                                        "1,1",
                                        "0-2,1",
                                        "4096",
                                        "1 2",
                                        "-1",
                                        "1;2",
                                        "99999999999999999999"};
    struct cpus cpus;

    EXPECT(cpus_parse("0", &cpus) && cpus.count == 1 && cpus.numbers[0] == 0);
    EXPECT(cpus_parse("5,0-2,4095", &cpus) && cpus.count == 5);
    EXPECT(cpus.numbers[0] == 5 && cpus.numbers[3] == 2);
    EXPECT(cpus.numbers[4] == 4095);
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        EXPECT(!cpus_parse(WRONG[i], &cpus));
    }
}

int main(void)
{
    test_same_work_gives_the_same_number();
    test_run_ends_in_time();
    test_rates_of_parts();
    test_long_quantum_counts_with_its_share();
    test_lists_of_cpus();
    return 0;
}
