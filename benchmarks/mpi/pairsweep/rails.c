/* SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"

#include "launcher.h"

#include <stdio.h>
#include <string.h>

/* The start of a name, and its length; the first rail is always there. */
static const char *rails_find(const char *rails, int rail, size_t *length)
{
    for (int i = 0; i < rail; i++) {
        rails += strcspn(rails, ",") + 1;
    }
    *length = strcspn(rails, ",");
    return rails;
}

int rails_count(const char *rails)
{
    int count = 1;

    for (; rails != NULL && *rails != '\0'; rails++) {
        count += *rails == ',';
    }
    return count;
}

const char *rails_name(const char *rails, int rail, char room[RAILS_NAME_SIZE])
{
    size_t length = 0;

    if (rails == NULL) {
        return NULL;
    }
    const char *name = rails_find(rails, rail, &length);
    (void)snprintf(room, RAILS_NAME_SIZE, "%.*s", (int)length, name);
    return room;
}

bool rails_are_good(const char *rails)
{
    bool good = strlen(rails) < RAILS_TEXT_SIZE;

    for (int i = 0; good && i < rails_count(rails); i++) {
        size_t length = 0;

        (void)rails_find(rails, i, &length);
        good = length > 0 && length < RAILS_NAME_SIZE;
    }
    return good;
}

int rails_own(const char *rails)
{
    long place = launcher_local_rank();

    return place < 0 ? -1 : (int)(place % rails_count(rails));
}
