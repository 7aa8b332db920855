/* SPDX-License-Identifier: Apache-2.0 */
#include "node_program.h"

#include "version.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void node_host(char host[NODE_HOST_SIZE])
{
    (void)snprintf(host, NODE_HOST_SIZE, "unknown host");
    (void)gethostname(host, NODE_HOST_SIZE - 1);
    host[NODE_HOST_SIZE - 1] = '\0';
}

void node_print(const char *program, const char *text, ...)
{
    char host[NODE_HOST_SIZE];
    va_list arguments;

    node_host(host);
    (void)fprintf(stderr, "%s: %s: ", program, host);
    va_start(arguments, text);
    (void)vfprintf(stderr, text, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
}

enum node_exit node_finish(const char *program, struct output_writer *writer,
                           enum node_exit code)
{
    if (output_finish(writer)) {
        return code;
    }
    node_print(program, "output: fflush: %s", strerror(errno));
    return NODE_FAILED;
}

int node_main(const struct node_program *program, void *settings, int argc,
              char **argv)
{
    char error[OPTIONS_ERROR_SIZE] = "";

    switch (options_parse(program->options, settings, argc, argv, error)) {
    case OPTIONS_HELP:
        options_help(stdout, program->name, program->purpose, program->options,
                     program->defaults);
        return fflush(stdout) == 0 ? NODE_PASS : NODE_FAILED;
    case OPTIONS_VERSION:
        (void)printf("%s %s (%s)\n", program->name, VERSION, COMMIT);
        return fflush(stdout) == 0 ? NODE_PASS : NODE_FAILED;
    case OPTIONS_RUN:
        if (program->verify(settings, error)) {
            return (int)program->run(settings);
        }
        break;
    case OPTIONS_ERROR:
        break;
    }
    node_print(program->name, "%s (see --help)", error);
    return NODE_USAGE;
}
