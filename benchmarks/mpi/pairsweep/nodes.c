/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

static int nodes_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void nodes_create(struct nodes *nodes, int count, const char **hosts,
                  const char *own, const char *first)
{
    qsort((void *)hosts, (size_t)count, sizeof(*hosts), nodes_compare);
    *nodes = (struct nodes){.count = count, .hosts = hosts};
    nodes->own = nodes_find(nodes, own);
    nodes->first = nodes_find(nodes, first);
}

static int nodes_compare_host(const void *host, const void *element)
{
    const char *name = host;
    const char *known = *(const char *const *)element;
    size_t length = strcspn(name, ".");
    int order = strncmp(name, known, length);

    return order != 0 ? order : -(known[length] != '\0');
}

int nodes_find(const struct nodes *nodes, const char *host)
{
    const char **found = (const char **)bsearch(
        host, (const void *)nodes->hosts, (size_t)nodes->count,
        sizeof(*nodes->hosts), nodes_compare_host);

    return found == NULL ? -1 : (int)(found - nodes->hosts);
}
