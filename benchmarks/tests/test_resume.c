/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a sweep reads: its own earlier output, lists of pairs. */
#include "jsonl.h"
#include "nodes.h"
#include "pairlist.h"
#include "plan.h"
#include "resume.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char RUN[] =
    "{\"type\": \"run\", \"program\": \"pairsweep\", \"nodes\": 3, "
    "\"rails\": null, \"seed\": 1, \"mpi\": \"an MPI\"}\n";
static const char SWEEP[] =
    "{\"type\": \"pair\", \"mode\": \"sweep\", \"status\": \"ok\", "
    "\"source\": \"cn1\", \"destination\": \"cn2\", \"rail\": 0, "
    "\"latency_p50_us\": 2.5, \"bw_mb_per_s\": 900.5, "
    "\"bw_back_mb_per_s\": 800.25}\n";
static const char QUIET[] =
    "{\"type\":\"pair\",\"mode\":\"quiet\",\"status\":\"ok\","
    "\"source\":\"cn1\",\"destination\":\"cn2\",\"rail\":0,"
    "\"latency_p50_us\":1,\"bw_mb_per_s\":900,\"bw_back_mb_per_s\":901}\n";
static const char HUNG[] =
    "{\"type\":\"pair\",\"mode\":\"sweep\",\"status\":\"hung\","
    "\"source\":\"cn3\",\"destination\":\"cn1\",\"rail\":0,"
    "\"latency_p50_us\":null,\"reason\":\"a \\\"b\\\" \\u00e9\"}\n";
static const char FOREIGN[] =
    "{\"type\":\"pair\",\"mode\":\"sweep\",\"status\":\"ok\","
    "\"source\":\"cn1\",\"destination\":\"cn9\",\"rail\":0}\n";
static const char ALL_FOREIGN[] =
    "{\"type\":\"pair\",\"mode\":\"sweep\",\"status\":\"ok\","
    "\"source\":\"cn8\",\"destination\":\"cn9\",\"rail\":0}\n";
static const char EVENT[] = "{\"type\":\"event\",\"event\":\"left_out\"}\n";
static const char END[] = "{\"type\": \"end\", \"measured\": 1}\n";

enum { NODES = 3, MOST_RECORDS = 8, MOST_LINES = 6, TEXT_SIZE = 4096 };

static const char *hosts[NODES] = {"cn3", "cn1", "cn2"};
static struct nodes nodes;

/** The content of a file. */
struct found {
    struct record records[MOST_RECORDS];
    int count;
    bool failed;
    long passed_over;
    char error[RECORD_ERROR_SIZE];
    char rest[TEXT_SIZE]; /* the file afterwards, and a line more */
};

static void test_nodes(void)
{
    EXPECT(nodes.own == 1 && nodes.first == 2);
    EXPECT(strcmp(nodes.hosts[0], "cn1") == 0);
    EXPECT(nodes_find(&nodes, "cn2") == 1);
    EXPECT(nodes_find(&nodes, "cn2.example.org") == 1);
    EXPECT(nodes_find(&nodes, "cn") == -1 && nodes_find(&nodes, "cn20") == -1);
    EXPECT(nodes_find(&nodes, "") == -1 && nodes_find(&nodes, "zz") == -1);
}

static void test_json(void)
{
    struct jsonl_field fields[] = {{.key = "a"}, {.key = "b"}, {.key = "c"}};

    EXPECT(jsonl_read(
        " {\"a\" : -1.5e3, \"x\": true,\t\"b\": \"\\u00e9\\n\\\"\"}\n", fields,
        3));
    EXPECT(fields[0].type == JSONL_NUMBER && fields[0].number == -1500.0);
    EXPECT(fields[1].type == JSONL_TEXT);
    EXPECT(strcmp(fields[1].text, "\xc3\xa9\n\"") == 0);
    EXPECT(fields[2].type == JSONL_MISSING);
    EXPECT(jsonl_read("{\"a\":null,\"b\":false}", fields, 3));
    EXPECT(fields[0].type == JSONL_NULL && fields[1].type == JSONL_BOOL);
}

static void test_bad_json(void)
{
    static const char *const LINES[] = {
        "",
        "{",
        "{}",
        "[1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1}}",
        "{\"a\":1} x",
        "{a:1}",
        "{\"a\":[1]}",
        "{\"a\":{}}",
        "{\"a\":nan}",
        "{\"a\":+1}",
        "{\"a\":0x1}",
        "{\"a\":1-}",
        "{\"a\":\"x}",
        "{\"a\":\"\\q\"}",
        "{\"a\":\"\\u00g0\"}",
        "{\"a\":\"\\",
        "{\"a\":\"\\u12",
        "{\"a\":\"\t\"}",
        "{\"a\":nul}",
    };
    struct jsonl_field field = {.key = "a"};

    for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
        EXPECT(!jsonl_read(LINES[i], &field, 1));
    }
}

/* A text that is wanted must fit, another one may have any length. */
static void test_long_text(void)
{
    char line[2 * JSONL_TEXT_SIZE];
    struct jsonl_field field = {.key = "a"};
    struct jsonl_field other = {.key = "b"};

    for (int length = JSONL_TEXT_SIZE - 1; length <= JSONL_TEXT_SIZE;
         length++) {
        (void)snprintf(line, sizeof(line), "{\"a\":\"%0*d\"}", length, 0);
        EXPECT(jsonl_read(line, &field, 1) == (length < JSONL_TEXT_SIZE));
        EXPECT(jsonl_read(line, &other, 1));
    }
}

static void put(FILE *stream, const char *text)
{
    EXPECT(fputs(text, stream) >= 0);
}

/* Read a file of lines; then append one, and see what is there. */
static struct found read_file(const char *const lines[MOST_LINES])
{
    const struct output_field settings[] = {
        output_text("rails", NULL, NULL),
        output_integer("seed", NULL, 1),
        output_text("mpi", NULL, "an MPI"),
    };
    struct found found = {.count = 0};
    FILE *stream = tmpfile();
    struct resume resume = {
        .path = "sweep.jsonl",
        .stream = stream,
        .nodes = &nodes,
        .settings = settings,
        .settings_count = sizeof(settings) / sizeof(settings[0]),
        .rails = 2,
    };
    enum record_found outcome = RECORD_FOUND;

    EXPECT(stream != NULL);
    for (int i = 0; i < MOST_LINES && lines[i] != NULL; i++) {
        put(stream, lines[i]);
    }
    EXPECT(fseek(stream, 0, SEEK_SET) == 0);
    while (outcome == RECORD_FOUND) {
        EXPECT(found.count < MOST_RECORDS);
        outcome = resume_next(&resume, &found.records[found.count]);
        found.count += outcome == RECORD_FOUND;
    }
    found.failed = outcome == RECORD_ERROR;
    found.passed_over = resume.passed_over;
    memcpy(found.error, resume.error, sizeof(found.error));
    resume_free(&resume);
    put(stream, "more\n");
    EXPECT(fseek(stream, 0, SEEK_SET) == 0);
    EXPECT(fread(found.rest, 1, TEXT_SIZE - 1, stream) > 0);
    EXPECT(fclose(stream) == 0);
    return found;
}

static void test_records(void)
{
    struct found found = read_file(
        (const char *[MOST_LINES]){EVENT, RUN, SWEEP, QUIET, HUNG, END});

    EXPECT(!found.failed && found.count == 3 && found.passed_over == 0);
    const struct record *sweep = &found.records[0];
    EXPECT(sweep->kind == RECORD_DONE && sweep->rail == 0);
    EXPECT(sweep->source == 0 && sweep->destination == 1);
    EXPECT(sweep->latency_us == 2.5F && sweep->bw_mb_per_s == 800.25F);
    EXPECT(found.records[1].kind == RECORD_RETESTED);
    const struct record *hung = &found.records[2];
    EXPECT(hung->kind == RECORD_DONE);
    EXPECT(hung->source == 2 && hung->destination == 0);
    EXPECT(isnan(hung->latency_us) && isnan(hung->bw_mb_per_s));
}

static void test_other_nodes_are_passed_over(void)
{
    struct found found =
        read_file((const char *[MOST_LINES]){RUN, FOREIGN, SWEEP, ALL_FOREIGN});

    EXPECT(!found.failed && found.count == 1 && found.passed_over == 2);
    EXPECT(strstr(found.rest, "cn9") != NULL);
    found = read_file((const char *[MOST_LINES]){RUN, ALL_FOREIGN});
    EXPECT(found.failed);
    EXPECT(strcmp(found.error, "sweep.jsonl, line 2: none of its nodes is in "
                               "this run") == 0);
}

/* A last line of any length below the whole, newline included, is cut off. */
static void test_half_a_line_is_cut_off(void)
{
    for (size_t length = 0; length < sizeof(SWEEP) - 1; length++) {
        char half[sizeof(SWEEP)] = "";
        char expected[TEXT_SIZE];

        memcpy(half, SWEEP, length);
        struct found found =
            read_file((const char *[MOST_LINES]){RUN, QUIET, half});
        EXPECT(!found.failed && found.count == 1);
        (void)snprintf(expected, sizeof(expected), "%s%smore\n", RUN, QUIET);
        EXPECT(strcmp(found.rest, expected) == 0);
    }
}

static void test_empty_files(void)
{
    static const char *const FILES[][MOST_LINES] = {{NULL}, {"{\"ty"}, {EVENT}};

    for (size_t i = 0; i < sizeof(FILES) / sizeof(FILES[0]); i++) {
        struct found found = read_file(FILES[i]);

        EXPECT(!found.failed && found.count == 0);
    }
}

static void test_what_is_refused(void)
{
    static const struct {
        const char *line;
        const char *error;
    } CASES[] = {
        {"garbage\n", "no row of pairsweep"},
        {"\n", "no row of pairsweep"},
        {"{\"type\": \"other\"}\n", "no row of pairsweep"},
        {"{\"type\": \"run\", \"program\": \"halo2d\"}\n",
         "no row of pairsweep"},
        {"{\"type\":\"pair\",\"mode\":\"loud\",\"source\":\"cn1\","
         "\"destination\":\"cn2\",\"rail\":0}\n",
         "no row of pairsweep"},
        {"{\"type\":\"pair\",\"mode\":\"sweep\",\"source\":\"cn1\","
         "\"destination\":\"cn2\",\"rail\":2}\n",
         "no row of pairsweep"},
        {"{\"type\":\"pair\",\"mode\":\"sweep\",\"source\":\"cn1\","
         "\"destination\":null,\"rail\":0}\n",
         "no row of pairsweep"},
        {"{\"type\":\"run\",\"program\":\"pairsweep\",\"rails\":null,"
         "\"seed\":2,\"mpi\":\"an MPI\"}\n",
         "a run with other settings: seed was 2, give the same or another "
         "file"},
        {"{\"type\":\"run\",\"program\":\"pairsweep\",\"rails\":\"a,b\","
         "\"seed\":1,\"mpi\":\"an MPI\"}\n",
         "a run with other settings: rails was 'a,b', give the same or another "
         "file"},
        {"{\"type\":\"run\",\"program\":\"pairsweep\",\"rails\":null,"
         "\"seed\":1}\n",
         "a run with other settings: mpi was nothing, give the same or another "
         "file"},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        char expected[RECORD_ERROR_SIZE];
        struct found found =
            read_file((const char *[MOST_LINES]){RUN, CASES[i].line, END});

        (void)snprintf(expected, sizeof(expected), "sweep.jsonl, line 2: %s",
                       CASES[i].error);
        EXPECT(found.failed && strcmp(found.error, expected) == 0);
    }
    EXPECT(read_file((const char *[MOST_LINES]){SWEEP}).failed); /* no run */
}

static void test_pair_list(void)
{
    static const struct {
        const char *text;
        const char *error; /* NULL: good */
        int round;         /* of the second pair */
    } CASES[] = {
        {"# all\n\ncn1 cn2\n  cn3\tcn1.example.org # why\n", NULL, 0},
        {"cn1 cn2\ncn3 cn1", NULL, 0},
        {"cn1 cn2 1\ncn3 cn1 4 # later\n", NULL, 4},
        {"cn1 cn2\ncn3\n", "pairs, line 2: expected HOST HOST [ROUND]", 0},
        {"cn1 cn2 1 2\n", "pairs, line 1: expected HOST HOST [ROUND]", 0},
        {"cn1 cn2 cn3\n", "pairs, line 1: no number of a round: cn3", 0},
        {"cn1 cn2 0\n", "pairs, line 1: no number of a round: 0", 0},
        {"cn1 cn2 9999999\n", "pairs, line 1: no number of a round: 9999999",
         0},
        {"cn1 cn2 1\ncn3 cn1\n",
         "pairs, line 2: expected a round in all lines, or in none", 0},
        {"cn1 cn2\ncn3 cn1 1\n",
         "pairs, line 2: expected a round in all lines, or in none", 0},
        {"cn1 cn2 2\ncn3 cn1 1\n",
         "pairs, line 2: expected rounds in their order, found 1", 0},
        {"cn1 cn2 2\ncn3 cn1 2\n",
         "pairs, line 2: a second time in this round: cn1", 0},
        {"cn1 cn4\n", "pairs, line 1: not a node of this run: cn4", 0},
        {"cn2 cn2\n", "pairs, line 1: a node and itself: cn2", 0},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        FILE *stream = tmpfile();
        int met[NODES] = {0};
        struct pairlist list = {
            .path = "pairs", .stream = stream, .nodes = &nodes, .met = met};
        struct record records[MOST_RECORDS];
        enum record_found found = RECORD_FOUND;
        int count = 0;

        EXPECT(stream != NULL);
        put(stream, CASES[i].text);
        EXPECT(fseek(stream, 0, SEEK_SET) == 0);
        while (found == RECORD_FOUND) {
            found = pairlist_next(&list, &records[count]);
            count += found == RECORD_FOUND;
        }
        EXPECT((found == RECORD_ERROR) == (CASES[i].error != NULL));
        if (CASES[i].error != NULL) {
            EXPECT(strcmp(list.error, CASES[i].error) == 0);
        } else {
            EXPECT(count == 2 && records[1].kind == RECORD_WANTED);
            EXPECT(records[1].source == 2 && records[1].destination == 0);
            EXPECT(records[1].round == CASES[i].round);
        }
        pairlist_free(&list);
        EXPECT(fclose(stream) == 0);
    }
}

/* The plan of node 1 of 3 on rail 1. */
static void test_plan(void)
{
    struct plan plan;
    void *room = calloc(1, plan_size_bytes(NODES));
    struct record done = {RECORD_DONE, 0, 1, 1, 0, 2.5F, 900.0F};

    EXPECT(room != NULL);
    plan_create(&plan, NODES, 1, 1, room);
    EXPECT(!plan_is_pending(&plan, 0));
    plan_want_all(&plan);
    EXPECT(plan_is_pending(&plan, 0) && plan_is_pending(&plan, 2));
    EXPECT(!plan_is_pending(&plan, 1));
    EXPECT(!plan_is_source(&plan, 0) && plan_is_source(&plan, 2));

    done.rail = 0;
    plan_keep(&plan, &done); /* not its rail */
    EXPECT(plan_is_pending(&plan, 0));
    done.rail = 1;
    plan_keep(&plan, &done);
    EXPECT(!plan_is_pending(&plan, 0) && plan.latency_us[0] == 2.5F);
    plan_keep(&plan, &(struct record){RECORD_DONE, 0, 2, 1, 0, 1.0F, 1.0F});
    EXPECT(plan_is_pending(&plan, 2)); /* not its pair */
    plan_unwant(&plan, 2);
    EXPECT(!plan_is_pending(&plan, 2));
    plan_keep(&plan, &(struct record){RECORD_WANTED, 2, 1, 0, 0, NAN, NAN});
    EXPECT(plan_is_pending(&plan, 2)); /* wanted on every rail */
    EXPECT(plan.round[2] == 0);
    plan_keep(&plan, &(struct record){RECORD_WANTED, 2, 1, 0, 7, NAN, NAN});
    EXPECT(plan.round[2] == 7 && plan.round[0] == 0);
    plan_keep(&plan, &(struct record){RECORD_RETESTED, 0, 1, 1, 0, 9.0F, 9.0F});
    EXPECT(plan_is(&plan, 0, RECORD_RETESTED) && plan.latency_us[0] == 2.5F);
    free(room);
}

int main(void)
{
    nodes_create(&nodes, NODES, hosts, "cn2", "cn3");
    test_nodes();
    test_json();
    test_bad_json();
    test_long_text();
    test_records();
    test_other_nodes_are_passed_over();
    test_half_a_line_is_cut_off();
    test_empty_files();
    test_what_is_refused();
    test_pair_list();
    test_plan();
    return 0;
}
