/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void write_rows(char *text, size_t size, bool json)
{
    FILE *stream = fmemopen(text, size, "w");

    EXPECT(stream != NULL);
    struct output_writer writer = {.stream = stream, .json = json};
    output_comment(&writer, "program %d", 1);
    for (int i = 0; i < 2; i++) {
        const struct output_field fields[] = {
            output_text("name", NULL, "a \"b\"\\\n\x01"),
            output_integer("size_bytes", "Size", 8 << i),
            output_real("time_us", "Time(us)", i == 0 ? 0.1 : 12345.678),
            output_real("broken_us", "Broken(us)", i == 0 ? NAN : -INFINITY),
            output_real_digits("short_us", "Short(us)", 0.0625, 3),
            output_text("validation", "Validation", "pass"),
            output_text("hca", NULL, NULL),
        };
        output_row(&writer, fields, sizeof(fields) / sizeof(fields[0]));
    }
    EXPECT(output_finish(&writer));
    EXPECT(fclose(stream) == 0);
}

static void test_table(void)
{
    char text[1024] = "";

    write_rows(text, sizeof(text), false);
    EXPECT(strcmp(text, "# program 1\n"
                        "# Size         Time(us)   Broken(us)    Short(us)   "
                        "Validation\n"
                        "8                  0.10          nan        0.062   "
                        "      pass\n"
                        "16             12345.68         -inf        0.062   "
                        "      pass\n") == 0);
}

static void test_json(void)
{
    char text[1024] = "";

    write_rows(text, sizeof(text), true);
    EXPECT(strcmp(text, "{\"name\": \"a \\\"b\\\"\\\\\\u000a\\u0001\", "
                        "\"size_bytes\": 8, \"time_us\": 0.1, "
                        "\"broken_us\": null, \"short_us\": 0.0625, "
                        "\"validation\": \"pass\", \"hca\": null}\n"
                        "{\"name\": \"a \\\"b\\\"\\\\\\u000a\\u0001\", "
                        "\"size_bytes\": 16, \"time_us\": 12345.678, "
                        "\"broken_us\": null, \"short_us\": 0.0625, "
                        "\"validation\": \"pass\", \"hca\": null}\n") == 0);
}

/* Columns stay apart where names are longer than they are. */
static void test_long_names(void)
{
    char text[1024] = "";
    const struct output_field fields[] = {
        output_text("source", "Source", "rack01-node001"),
        output_text("destination", "Destination", "rack01-node002"),
        output_integer("round", "Round", 1),
        output_text("hca", "HCA", NULL),
    };
    FILE *stream = fmemopen(text, sizeof(text), "w");

    EXPECT(stream != NULL);
    struct output_writer writer = {.stream = stream};
    output_row(&writer, fields, sizeof(fields) / sizeof(fields[0]));
    EXPECT(fclose(stream) == 0);
    EXPECT(
        strcmp(text,
               "# Source    Destination        Round          HCA\n"
               "rack01-node001 rack01-node002            1            -\n") ==
        0);
}

static void test_full_disk(void)
{
    FILE *stream = fopen("/dev/full", "w");

    EXPECT(stream != NULL);
    struct output_writer writer = {.stream = stream, .json = true};
    const struct output_field field = output_integer("n", "n", 1);
    output_row(&writer, &field, 1);
    errno = 0;
    EXPECT(!output_finish(&writer));
    EXPECT(errno == ENOSPC);
    (void)fclose(stream);
}

int main(void)
{
    test_table();
    test_json();
    test_long_names();
    test_full_disk();
    return 0;
}
