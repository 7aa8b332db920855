/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"

#include "check.h"

#include <mpi.h>
#include <stdlib.h>

enum { FEED_RECORDS = 4096 };

/** Records that travel together, and whether more follow. */
struct feed {
    int found; /* of the last one that was asked for */
    int count;
    struct record records[FEED_RECORDS];
};

static void feed_read(struct feed *feed, feed_next next, void *reader)
{
    feed->found = RECORD_FOUND;
    feed->count = 0;
    while (feed->found == RECORD_FOUND && feed->count < FEED_RECORDS) {
        feed->found = next(reader, &feed->records[feed->count]);
        feed->count += feed->found == RECORD_FOUND;
    }
}

bool feed_plan(struct plan *plan, feed_next next, void *reader)
{
    struct feed *feed = check_allocate(sizeof(*feed), "records of pairs");
    int rank = 0;
    int found = RECORD_FOUND;

    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "records of pairs");
    while (found == RECORD_FOUND) {
        if (rank == 0) {
            feed_read(feed, next, reader);
        }
        CHECK_MPI(MPI_Bcast(feed, sizeof(*feed), MPI_BYTE, 0, MPI_COMM_WORLD),
                  "records of pairs");
        for (int i = 0; i < feed->count; i++) {
            plan_keep(plan, &feed->records[i]);
        }
        found = feed->found;
    }
    free(feed);
    return found == RECORD_END;
}
