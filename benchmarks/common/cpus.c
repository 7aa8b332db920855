/* SPDX-License-Identifier: Apache-2.0 */
#include "cpus.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void cpus_format(const bool marked[CPUS_MAX], char text[CPUS_TEXT_SIZE])
{
    size_t length = 0;

    text[0] = '\0';
    for (int first = 0; first < CPUS_MAX; first++) {
        int last = first;

        if (!marked[first]) {
            continue;
        }
        while (last + 1 < CPUS_MAX && marked[last + 1]) {
            last++;
        }
        length += (size_t)snprintf(text + length, CPUS_TEXT_SIZE - length,
                                   first == last ? "%s%d" : "%s%d-%d",
                                   length > 0 ? "," : "", first, last);
        if (length >= CPUS_TEXT_SIZE) {
            return; /* cut off: 4,096 CPUs of which every other is marked */
        }
        first = last;
    }
}

/* Return whether a CPU is the first one of its core that is allowed. */
static bool cpus_is_first(int cpu, const cpu_set_t *allowed)
{
    char path[128];
    char text[256] = "";
    struct cpus core = {.count = 0};

    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu%d/topology/"
                   "thread_siblings_list",
                   cpu);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return true;
    }
    if (fgets(text, sizeof(text), file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
    }
    (void)fclose(file);
    if (!cpus_parse(text, &core)) {
        return true;
    }
    for (size_t i = 0; i < core.count; i++) {
        if (core.numbers[i] < cpu &&
            CPU_ISSET((size_t)core.numbers[i], allowed)) {
            return false;
        }
    }
    return true;
}

void cpus_of_cores(struct cpus *cpus)
{
    cpu_set_t allowed;

    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof(allowed), &allowed);
    cpus->count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &allowed) && cpus_is_first(cpu, &allowed)) {
            cpus->numbers[cpus->count++] = cpu;
        }
    }
}
