/* SPDX-License-Identifier: Apache-2.0 */
/* Writes two rows of nasty values as JSON; pytest compares what it reads. */
#include "check.h"
#include "report.h"
#include "unit.h"

#include <limits.h>
#include <math.h>

static const struct program PROGRAM = {.name = "a \"program\""};
static const struct settings_common COMMON = {
    .iterations = 1000, .warmup = 200, .json = true};

static void write_row(struct report *report, const char *host, double real)
{
    const struct stats_summary times = {.min = 0.1,
                                        .p50 = 0.2,
                                        .p99 = 1.0 / 3.0,
                                        .max = real,
                                        .mean = 1e-300,
                                        .n = 7};
    struct report_row row;

    report_begin(report, &row);
    report_add(&row, output_text("host", "Host", host));
    report_add(&row, output_text("\"key\"\t", NULL, ""));
    report_add(&row, output_integer("largest", NULL, LLONG_MAX));
    report_add(&row, output_integer("smallest", NULL, LLONG_MIN));
    report_add(&row, output_real("nothing", NULL, NAN));
    report_add_times(&row, &times);
    report_add_validation(&row, true, report->row > 1);
    report_end(report, &row);
}

static void test_full_disk_is_noticed(void)
{
    FILE *full = fopen("/dev/full", "w");
    struct report report;

    EXPECT(full != NULL);
    report_open(&report, full, &PROGRAM, &COMMON, 1, 1);
    write_row(&report, "cn01", 1.0);
    EXPECT(!report_close(&report));
    (void)fclose(full);
}

int main(int argc, char **argv)
{
    char all_bytes[128] = "";
    struct report report;

    for (int i = 1; i < 128; i++) {
        all_bytes[i - 1] = (char)i;
    }
    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    test_full_disk_is_noticed();
    report_open(&report, stdout, &PROGRAM, &COMMON, 64, 2);
    write_row(&report, all_bytes, 1e300);
    write_row(&report, "Knoten-\xc3\xa9\", \"np\": 1, \"x\": \"", -INFINITY);
    EXPECT(report_close(&report));
    CHECK_MPI(MPI_Finalize(), "end");
    return 0;
}
