/* SPDX-License-Identifier: Apache-2.0 */
#include "node_map.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CPU_FOLDER[] = "sys/devices/system/cpu";
static const char HCA_FOLDER[] = "sys/class/infiniband";

/* Read the first line of a file; false if there is none. */
static bool read_line(const char *path, char line[CPUS_TEXT_SIZE])
{
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        return false;
    }
    bool good = fgets(line, CPUS_TEXT_SIZE, file) != NULL;

    (void)fclose(file);
    line[good ? strcspn(line, "\n") : 0] = '\0';
    return good && line[0] != '\0';
}

static void append(char text[NODE_MAP_TEXT_SIZE], const char *word)
{
    size_t length = strlen(text);

    (void)snprintf(text + length, NODE_MAP_TEXT_SIZE - length, "%s%s",
                   length > 0 ? " " : "", word);
}

/* Append a list of CPUs once: where its first CPU is the one it was read of. */
static void append_group(const char *root, int cpu, const char *name,
                         char text[NODE_MAP_TEXT_SIZE])
{
    char path[PATH_MAX];
    char line[CPUS_TEXT_SIZE];

    (void)snprintf(path, sizeof(path), "%s/%s/cpu%d/topology/%s", root,
                   CPU_FOLDER, cpu, name);
    if (read_line(path, line) && strtol(line, NULL, 10) == cpu) {
        append(text, line);
    }
}

static void read_hcas(const char *root, struct node_map *map)
{
    char path[PATH_MAX];
    struct dirent **found = NULL;

    (void)snprintf(path, sizeof(path), "%s/%s", root, HCA_FOLDER);
    int count = scandir(path, &found, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char line[CPUS_TEXT_SIZE] = "-1";
        char word[CPUS_TEXT_SIZE + NAME_MAX + 2];

        if (found[i]->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "%s/%s/%s/device/numa_node",
                           root, HCA_FOLDER, found[i]->d_name);
            (void)read_line(path, line);
            (void)snprintf(word, sizeof(word), "%s:%s", found[i]->d_name, line);
            append(map->hcas, word);
        }
        free(found[i]);
    }
    free(found);
}

void node_map_read(const char *root, struct node_map *map)
{
    char path[PATH_MAX];
    char line[CPUS_TEXT_SIZE];
    struct cpus online = {.count = 0};

    memset(map, 0, sizeof(*map));
    (void)snprintf(path, sizeof(path), "%s/%s/online", root, CPU_FOLDER);
    if (read_line(path, line) && !cpus_parse(line, &online)) {
        online.count = 0;
    }
    for (size_t i = 0; i < online.count; i++) {
        append_group(root, online.numbers[i], "thread_siblings_list",
                     map->cores);
        append_group(root, online.numbers[i], "core_siblings_list",
                     map->sockets);
    }
    for (int node = 0; node < CPUS_MAX; node++) {
        (void)snprintf(path, sizeof(path),
                       "%s/sys/devices/system/node/node%d/cpulist", root, node);
        bool has_cpus = read_line(path, line);

        if (has_cpus) {
            append(map->numa, line);
        } else if (node > 0 && line[0] == '\0') {
            break;
        }
    }
    read_hcas(root, map);
}

static bool has_marked(const char *list, const bool marked[CPUS_MAX])
{
    struct cpus cpus;

    if (!cpus_parse(list, &cpus)) {
        return false;
    }
    for (size_t i = 0; i < cpus.count; i++) {
        if (marked[cpus.numbers[i]]) {
            return true;
        }
    }
    return false;
}

void node_map_numa_of(const struct node_map *map, const bool marked[CPUS_MAX],
                      char text[CPUS_TEXT_SIZE])
{
    bool numbers[CPUS_MAX] = {false};
    char *lists = strdup(map->numa);
    char *rest = lists;

    for (int node = 0; lists != NULL && node < CPUS_MAX; node++) {
        const char *list = strsep(&rest, " ");

        if (list == NULL) {
            break;
        }
        numbers[node] = has_marked(list, marked);
    }
    free(lists);
    cpus_format(numbers, text);
}

void node_map_hcas_of(const struct node_map *map, const char *numa,
                      char text[CPUS_TEXT_SIZE])
{
    struct cpus nodes;
    char *words = strdup(map->hcas);
    char *rest = words;
    size_t length = 0;

    text[0] = '\0';
    while (words != NULL && cpus_parse(numa, &nodes)) {
        char *word = strsep(&rest, " ");
        const char *node = word == NULL ? NULL : strrchr(word, ':');

        if (node == NULL) {
            break;
        }
        for (size_t i = 0; i < nodes.count; i++) {
            if (strtol(node + 1, NULL, 10) == nodes.numbers[i]) {
                length += (size_t)snprintf(
                    text + length, CPUS_TEXT_SIZE - length, "%s%.*s",
                    length > 0 ? "," : "", (int)(node - word), word);
            }
        }
    }
    free(words);
}
