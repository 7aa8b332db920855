/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAIRLIST_H
#define SEATRIAL_PAIRLIST_H

#include "nodes.h"
#include "record.h"

#include <stddef.h>
#include <stdio.h>

/** Reads a file of pairs: lines HOST HOST; from # on a line is a comment. */
struct pairlist {
    const char *path;
    FILE *stream;
    const struct nodes *nodes;
    /* The reader's own, from zero: */
    char *line;
    size_t size;
    long number;
    char error[RECORD_ERROR_SIZE];
};

/** Read the next pair. */
enum record_found pairlist_next(struct pairlist *list, struct record *record);

void pairlist_free(struct pairlist *list);

#endif
