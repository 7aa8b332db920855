/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "check.h"
#include "feed.h"
#include "pairlist.h"
#include "rails.h"
#include "resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool files_is_root(void)
{
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "files");
    return rank == 0;
}

/* The answer of rank 0 holds for all. */
static bool files_agree(bool good)
{
    CHECK_MPI(MPI_Bcast(&good, 1, MPI_C_BOOL, 0, MPI_COMM_WORLD), "files");
    return good;
}

static FILE *files_open(const char *path, const char *mode)
{
    FILE *stream = fopen(path, mode);

    if (stream == NULL) {
        check_print("fopen: %s: %s", path, strerror(errno));
    }
    return stream;
}

/* An earlier sweep is hours of work: it is not written over. */
static FILE *files_create(const char *path)
{
    FILE *stream = files_open(path, "a+e");

    if (stream != NULL && fseeko(stream, 0, SEEK_END) == 0 &&
        ftello(stream) > 0) {
        check_print("%s is not empty: go on in it with --resume, or give "
                    "another file",
                    path);
        (void)fclose(stream);
        return NULL;
    }
    return stream;
}

bool files_open_output(const struct settings *settings, FILE **stream_p)
{
    *stream_p = NULL;
    if (files_is_root()) {
        *stream_p = settings->output != NULL ? files_create(settings->output)
                    : settings->resume != NULL
                        ? files_open(settings->resume, "a+e")
                        : stdout;
    }
    return files_agree(*stream_p != NULL);
}

static enum record_found files_next_pair(void *reader, struct record *record)
{
    return pairlist_next(reader, record);
}

bool files_read_pairs(const struct settings *settings,
                      const struct nodes *nodes, struct plan *plan)
{
    struct pairlist list = {.path = settings->pairs, .nodes = nodes};

    if (settings->pairs == NULL) {
        plan_want_all(plan);
        return true;
    }
    if (files_is_root()) {
        list.met = check_allocate((size_t)nodes->count * sizeof(*list.met),
                                  "nodes of a round");
        list.stream = files_open(list.path, "re");
    }
    if (!files_agree(list.stream != NULL)) {
        free(list.met);
        return false;
    }
    bool good = feed_plan(plan, files_next_pair, &list);
    if (list.error[0] != '\0') {
        check_print("%s", list.error);
    }
    if (list.stream != NULL) {
        (void)fclose(list.stream);
    }
    pairlist_free(&list);
    free(list.met);
    return good;
}

static enum record_found files_next_done(void *reader, struct record *record)
{
    return resume_next(reader, record);
}

bool files_read_resume(const struct settings *settings,
                       const struct nodes *nodes, struct rows *rows,
                       struct plan *plan)
{
    struct report_row run = {.count = 0};
    struct resume resume = {
        .path = settings->resume,
        .nodes = nodes,
        .rails = rails_count(settings->rails),
    };

    if (settings->resume == NULL) {
        return true;
    }
    if (rows != NULL) {
        report_add_program(&rows->report, &run);
        rows_add_settings(rows, &run);
        resume.settings = run.fields;
        resume.settings_count = run.count;
        resume.stream = rows->report.writer.stream;
    }
    bool good = feed_plan(plan, files_next_done, &resume);
    if (resume.error[0] != '\0') {
        check_print("%s", resume.error);
    } else if (resume.passed_over > 0) {
        check_print("%s: %ld pairs with nodes that are not in this run stay as "
                    "they are",
                    resume.path, resume.passed_over);
    }
    resume_free(&resume);
    return good;
}
