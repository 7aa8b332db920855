/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "unit.h"

#include <string.h>

struct settings {
    struct options_span sizes;
    long count;
    size_t colour;
    bool loud;
    const char *file;
};

static const char *const COLOURS[] = {"red", "green", NULL};
static const struct settings DEFAULTS = {{0, 1024}, 7, 0, false, NULL};
static const struct options_row ROWS[] = {
    {"sizes", 'm', OPTIONS_SPAN, offsetof(struct settings, sizes), 0, 4096,
     NULL, "[MIN:]MAX", "sizes"},
    {"count", 'n', OPTIONS_INTEGER, offsetof(struct settings, count), 1, 100,
     NULL, "COUNT", "how often"},
    {"colour", 0, OPTIONS_CHOICE, offsetof(struct settings, colour), 0, 0,
     COLOURS, "NAME", "colour"},
    {"loud", 0, OPTIONS_FLAG, offsetof(struct settings, loud), 0, 0, NULL, NULL,
     "shout"},
    {"file", 'f', OPTIONS_TEXT, offsetof(struct settings, file), 0, 0, NULL,
     "NAME", "where to"},
    {.name = NULL},
};

enum { MOST_ARGUMENTS = 5 };

/* Parse up to four arguments, the rest NULL. */
static enum options_outcome parse(struct settings *settings, char *error,
                                  char *const arguments[MOST_ARGUMENTS])
{
    char program[] = "program";
    char *argv[MOST_ARGUMENTS + 1] = {program};
    int argc = 1;

    while (argc < MOST_ARGUMENTS && arguments[argc - 1] != NULL) {
        argv[argc] = arguments[argc - 1];
        argc++;
    }
    *settings = DEFAULTS;
    error[0] = '\0';
    return options_parse(ROWS, settings, argc, argv, error);
}

static void test_good(void)
{
    static const struct {
        char *arguments[MOST_ARGUMENTS];
        struct settings expected;
    } CASES[] = {
        {{NULL}, {{0, 1024}, 7, 0, false, NULL}},
        {{"--count", "9"}, {{0, 1024}, 9, 0, false, NULL}},
        {{"--count=100"}, {{0, 1024}, 100, 0, false, NULL}},
        {{"-n", "1"}, {{0, 1024}, 1, 0, false, NULL}},
        {{"-n8", "-n9"}, {{0, 1024}, 9, 0, false, NULL}},
        {{"-m", "64"}, {{0, 64}, 7, 0, false, NULL}},
        {{"--sizes=2:64"}, {{2, 64}, 7, 0, false, NULL}},
        {{"--colour", "green", "--loud"}, {{0, 1024}, 7, 1, true, NULL}},
        {{"--file", "a b"}, {{0, 1024}, 7, 0, false, "a b"}},
        {{"--file=x=y"}, {{0, 1024}, 7, 0, false, "x=y"}},
        {{"-f-", "-n9"}, {{0, 1024}, 9, 0, false, "-"}},
        {{"-f", "--loud"}, {{0, 1024}, 7, 0, false, "--loud"}},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct settings settings;
        char error[OPTIONS_ERROR_SIZE];
        const struct settings *expected = &CASES[i].expected;

        EXPECT(parse(&settings, error, CASES[i].arguments) == OPTIONS_RUN);
        EXPECT(settings.sizes.min == expected->sizes.min);
        EXPECT(settings.sizes.max == expected->sizes.max);
        EXPECT(settings.count == expected->count);
        EXPECT(settings.colour == expected->colour);
        EXPECT(settings.loud == expected->loud);
        EXPECT((settings.file == NULL) == (expected->file == NULL));
        EXPECT(expected->file == NULL ||
               strcmp(settings.file, expected->file) == 0);
    }
}

static void test_bad(void)
{
    static const struct {
        char *arguments[MOST_ARGUMENTS];
        const char *error;
    } CASES[] = {
        {{"--bogus"}, "unknown argument '--bogus'"},
        {{"--coun", "9"}, "unknown argument '--coun'"},
        {{"--"}, "unknown argument '--'"},
        {{"-"}, "unknown argument '-'"},
        {{""}, "unknown argument ''"},
        {{"file"}, "unknown argument 'file'"},
        {{"--help=yes"}, "unknown argument '--help=yes'"},
        {{"--loud=1"}, "--loud takes no value, found '1'"},
        {{"--count"}, "--count needs a value: COUNT"},
        {{"--count", ""}, "--count: '' is not an integer from 1 to 100"},
        {{"--count", "0"}, "--count: '0' is not an integer from 1 to 100"},
        {{"--count", "101"}, "--count: '101' is not an integer from 1 to 100"},
        {{"--count=-1"}, "--count: '-1' is not an integer from 1 to 100"},
        {{"--count", "9x"}, "--count: '9x' is not an integer from 1 to 100"},
        {{"--count", " 9"}, "--count: ' 9' is not an integer from 1 to 100"},
        {{"--count", "1e1"}, "--count: '1e1' is not an integer from 1 to 100"},
        {{"--count", "99999999999999999999"},
         "--count: '99999999999999999999' is not an integer from 1 to 100"},
        {{"--file"}, "--file needs a value: NAME"},
        {{"--file", ""}, "--file: empty, expected NAME"},
        {{"--file="}, "--file: empty, expected NAME"},
        {{"--colour", "blue"}, "--colour: 'blue' is none of: red, green"},
        {{"-m", ":"}, "--sizes: ':' is not [MIN:]MAX, integers from 0 to 4096"},
        {{"-m", "1:2:3"},
         "--sizes: '1:2:3' is not [MIN:]MAX, integers from 0 to 4096"},
        {{"-m", "4097"},
         "--sizes: '4097' is not [MIN:]MAX, integers from 0 to 4096"},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct settings settings;
        char error[OPTIONS_ERROR_SIZE];

        EXPECT(parse(&settings, error, CASES[i].arguments) == OPTIONS_ERROR);
        if (strcmp(error, CASES[i].error) != 0) {
            (void)fprintf(stderr, "expected %s\nfound    %s\n", CASES[i].error,
                          error);
            exit(EXIT_FAILURE);
        }
    }
}

static void test_long_bad_argument_is_cut(void)
{
    struct settings settings;
    char error[OPTIONS_ERROR_SIZE];
    char text[1000] = "";
    char *arguments[MOST_ARGUMENTS] = {text};

    memset(text, 'x', sizeof(text) - 1);
    EXPECT(parse(&settings, error, arguments) == OPTIONS_ERROR);
    EXPECT(strlen(error) == OPTIONS_ERROR_SIZE - 1);
}

static void test_help(void)
{
    struct settings settings;
    struct settings changed = {{8, 16}, 3, 1, false, "out"};
    char error[OPTIONS_ERROR_SIZE];
    char text[1024] = "";
    char *help[MOST_ARGUMENTS] = {"-n", "9", "--help", "--bogus"};
    char *version[MOST_ARGUMENTS] = {"-v"};
    FILE *stream = fmemopen(text, sizeof(text), "w");

    EXPECT(parse(&settings, error, help) == OPTIONS_HELP);
    EXPECT(parse(&settings, error, version) == OPTIONS_VERSION);
    EXPECT(stream != NULL);
    options_help(stream, "program", "Does it.", ROWS, &changed);
    EXPECT(fclose(stream) == 0);
    EXPECT(strcmp(text, "Usage: program [options]\n"
                        "\n"
                        "Does it.\n"
                        "\n"
                        "Options:\n"
                        "  -m, --sizes [MIN:]MAX        sizes (default 8:16)\n"
                        "  -n, --count COUNT            how often (default 3)\n"
                        "      --colour NAME            colour: red, green "
                        "(default green)\n"
                        "      --loud                   shout\n"
                        "  -f, --file NAME              where to (default "
                        "out)\n"
                        "  -h, --help                   print this text and "
                        "exit\n"
                        "  -v, --version                print the version and "
                        "exit\n") == 0);
}

static void test_sizes(void)
{
    EXPECT(options_next_size(0) == 2);
    EXPECT(options_next_size(1) == 2);
    EXPECT(options_next_size(512) == 1024);
    EXPECT(options_count_sizes((struct options_span){0, 0}) == 1);
    EXPECT(options_count_sizes((struct options_span){0, 1024}) == 11);
    EXPECT(options_count_sizes((struct options_span){100, 399}) == 2);
    EXPECT(options_count_sizes((struct options_span){2, 1}) == 0);
}

int main(void)
{
    test_good();
    test_bad();
    test_long_bad_argument_is_cut();
    test_help();
    test_sizes();
    return 0;
}
