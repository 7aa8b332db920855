/* SPDX-License-Identifier: Apache-2.0 */
#include "pairlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRLIST_MAX = 1 << 20 }; /* rounds */

static const char PAIRLIST_SPACE[] = " \t\r\n";

/* The error in a line, before its host, if any. */
static enum record_found pairlist_refuse(struct pairlist *list,
                                         const char *reason, const char *host)
{
    (void)snprintf(list->error, RECORD_ERROR_SIZE, "%.200s, line %ld: %s%s",
                   list->path, list->number, reason, host);
    return RECORD_ERROR;
}

/* Check the round of a pair, NULL without one, against those before. */
static enum record_found pairlist_read_round(struct pairlist *list,
                                             const char *text,
                                             struct record *record)
{
    const int ends[] = {record->source, record->destination};
    char *end = NULL;
    long round = text == NULL ? 0 : strtol(text, &end, 10);

    if (text != NULL && (*end != '\0' || round < 1 || round > PAIRLIST_MAX)) {
        return pairlist_refuse(list, "no number of a round: ", text);
    }
    if (list->has_pairs && (round == 0) != (list->round == 0)) {
        return pairlist_refuse(list,
                               "expected a round in all lines, or in none", "");
    }
    if (round < list->round) {
        return pairlist_refuse(list, "expected rounds in their order, found ",
                               text);
    }
    for (int i = 0; round > 0 && i < 2; i++) {
        if (list->met[ends[i]] == round) {
            return pairlist_refuse(list, "a second time in this round: ",
                                   list->nodes->hosts[ends[i]]);
        }
        list->met[ends[i]] = (int)round;
    }
    list->has_pairs = true;
    list->round = round;
    record->round = (int)round;
    return RECORD_FOUND;
}

/* Read a line. RECORD_END: there is nothing in it. */
static enum record_found pairlist_read_line(struct pairlist *list,
                                            struct record *record)
{
    char *rest = NULL;

    list->line[strcspn(list->line, "#")] = '\0';
    const char *source = strtok_r(list->line, PAIRLIST_SPACE, &rest);
    const char *destination = strtok_r(NULL, PAIRLIST_SPACE, &rest);
    const char *round = strtok_r(NULL, PAIRLIST_SPACE, &rest);
    if (source == NULL) {
        return RECORD_END;
    }
    if (destination == NULL || strtok_r(NULL, PAIRLIST_SPACE, &rest) != NULL) {
        return pairlist_refuse(list, "expected HOST HOST [ROUND]", "");
    }
    *record = (struct record){
        .kind = RECORD_WANTED,
        .source = nodes_find(list->nodes, source),
        .destination = nodes_find(list->nodes, destination),
    };
    if (record->source < 0 || record->destination < 0) {
        return pairlist_refuse(list, "not a node of this run: ",
                               record->source < 0 ? source : destination);
    }
    if (record->source == record->destination) {
        return pairlist_refuse(list, "a node and itself: ", source);
    }
    return pairlist_read_round(list, round, record);
}

enum record_found pairlist_next(struct pairlist *list, struct record *record)
{
    enum record_found found = RECORD_END;

    while (found == RECORD_END) {
        if (getline(&list->line, &list->size, list->stream) < 0) {
            return ferror(list->stream) == 0
                       ? RECORD_END
                       : pairlist_refuse(list, strerror(errno), "");
        }
        list->number++;
        found = pairlist_read_line(list, record);
    }
    return found;
}

void pairlist_free(struct pairlist *list)
{
    free(list->line);
    list->line = NULL;
}
