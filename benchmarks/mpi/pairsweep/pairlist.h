/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAIRLIST_H
#define SEATRIAL_PAIRLIST_H

#include "nodes.h"
#include "record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/**
 * Reads a file of pairs: lines HOST HOST [ROUND]; from # on a line is a
 * comment. Either all lines have a round, in ascending order and with no node
 * twice in a round, or none has.
 */
struct pairlist {
    const char *path;
    FILE *stream;
    const struct nodes *nodes;
    int *met; /* room for the last round of each node, from zero */
    /* The reader's own, from zero: */
    char *line;
    size_t size;
    long number;
    long round; /* of the last pair; 0: none has a round */
    bool has_pairs;
    char error[RECORD_ERROR_SIZE];
};

/** Read the next pair. */
enum record_found pairlist_next(struct pairlist *list, struct record *record);

void pairlist_free(struct pairlist *list);

#endif
