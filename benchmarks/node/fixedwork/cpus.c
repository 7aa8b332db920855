/* SPDX-License-Identifier: Apache-2.0 */
#include "cpus.h"

#include <ctype.h>
#include <stdlib.h>

/* Read a number and step over it; -1 if there is none. */
static long cpus_number(const char **text)
{
    char *end = NULL;

    if (!isdigit((unsigned char)**text)) {
        return -1;
    }
    long number = strtol(*text, &end, 10);
    *text = end;
    return number < CPUS_MAX ? number : -1;
}

bool cpus_parse(const char *text, struct cpus *cpus)
{
    bool seen[CPUS_MAX] = {false};

    cpus->count = 0;
    for (;;) {
        long first = cpus_number(&text);
        long last = first;

        if (*text == '-') {
            text++;
            last = cpus_number(&text);
        }
        if (first < 0 || last < first) {
            return false;
        }
        for (long cpu = first; cpu <= last; cpu++) {
            if (seen[cpu]) {
                return false;
            }
            seen[cpu] = true;
            cpus->numbers[cpus->count++] = (int)cpu;
        }
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}
