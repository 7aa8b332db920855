/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_MQ_H
#define SEATRIAL_MQ_H

#include "program.h"
#include "settings.h"

#include <mpi.h>
#include <stddef.h>

/** Settings of both programs. */
struct mq_settings {
    struct settings_common common;
    struct options_span depth;
    long entry_bytes;
    size_t tags;
};

enum {
    MQ_MAX_DEPTH = 16384, /* every MPI has 32767 tags */
    MQ_MAX_ENTRY = 4096,
    MQ_LAST_TAG = 15, /* of the last entry; smaller ones are the ping-pong's */
    MQ_FIRST_TAG,     /* of the others */
};

/** The tags that entries have, by name; the list ends with NULL. */
extern const char *const MQ_TAGS[];
enum mq_tags { MQ_TAGS_SAME, MQ_TAGS_ORDERED, MQ_TAGS_RANDOM };

/** The rows of both programs. */
extern const struct options_row MQ_OPTIONS[];

/** Messages that both ranks of a pair send each other: entries of a queue. */
struct mq_queue {
    MPI_Comm comm;    /* of entries and ping-pong: they meet in one queue */
    MPI_Comm control; /* of barriers */
    int rank;
    int peer;
    int depth;       /* entries now */
    int entry_bytes; /* of each entry */
    int *tags;       /* of all entries but the last */
    char *sent;      /* depth x entry_bytes */
    char *received;
    MPI_Request *sends;
    MPI_Request *receives;
};

/** Create a queue for a number of entries; its depth is 0. */
void mq_queue_create(const struct mq_settings *settings,
                     struct mq_queue *queue);
void mq_queue_free(struct mq_queue *queue);

/** The largest number of bytes that mq_queue_create takes. */
double mq_queue_size_bytes(const struct mq_settings *settings);

/** Begin to send, or to receive, every entry. */
void mq_start_sends(const struct mq_queue *queue);
void mq_start_receives(const struct mq_queue *queue);

/** Wait until all entries are sent, or received. */
void mq_finish_sends(const struct mq_queue *queue);
void mq_finish_receives(const struct mq_queue *queue);

/** Fill every entry with contents of its own, and clear received contents. */
void mq_prepare(const struct mq_queue *queue);

/** Return whether all received contents are right; print the first wrong. */
bool mq_check(const struct mq_queue *queue);

/** The parts in which the two programs differ. */
struct mq_kind {
    const struct program *program;
    void (*fill)(const struct mq_queue *queue);  /* on return it is filled */
    void (*empty)(const struct mq_queue *queue); /* every entry is received */
};

/** Refuse settings that contradict each other. */
bool mq_verify(const void *settings, char error[OPTIONS_ERROR_SIZE]);

/** Measure every size and depth, and report. */
enum check_exit mq_run(const struct mq_kind *kind,
                       const struct mq_settings *settings);

#endif
