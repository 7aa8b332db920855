/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CACHE_UNKNOWN_MIB = 64, CACHE_INDICES = 8 };

double machine_available_bytes(void)
{
    FILE *stream = fopen("/proc/meminfo", "re");
    char line[256];
    double available =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    if (stream == NULL) {
        return available;
    }
    while (fgets(line, sizeof(line), stream) != NULL) {
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            available = strtod(line + 13, NULL) * 1024.0;
        }
    }
    (void)fclose(stream);
    return available;
}

/* As the kernel writes it, 32768K; 0 where there is no such cache. */
static size_t machine_cache_bytes(int cpu, int index)
{
    char path[96];
    unsigned long kib = 0;

    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu,
                   index);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return 0;
    }
    if (fscanf(stream, "%luK", &kib) != 1) {
        kib = 0;
    }
    (void)fclose(stream);
    return kib * 1024;
}

/*
 * sysconf counts all last-level caches of a processor that has several, of
 * which a CPU uses one only: it is asked where the kernel lists none.
 */
size_t machine_largest_cache_bytes(void)
{
    int cpu = sched_getcpu();
    size_t largest = 0;

    for (int i = 0; i < CACHE_INDICES; i++) {
        size_t found = machine_cache_bytes(cpu < 0 ? 0 : cpu, i);

        largest = found > largest ? found : largest;
    }
    if (largest == 0) {
        long found = sysconf(_SC_LEVEL3_CACHE_SIZE);

        largest =
            found > 0 ? (size_t)found : (size_t)CACHE_UNKNOWN_MIB * 0x100000;
    }
    return largest;
}
