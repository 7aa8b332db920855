#!/bin/bash
# shellcheck disable=SC2154  # the caller sets the variable subject
# Functions that print facts of a login node as lines SUBJECT<TAB>NAME<TAB>VALUE.
say() { printf '%s\t%s\t%s\n' "$subject" "$1" "$(printf '%s' "$2" | tr '\n\t' '  ')"; }
say_lines() { # print a fact for every line of standard input
    while IFS= read -r line || [ -n "$line" ]; do say "$1" "$line"; done
}

say_pythons() { # print version of each Python: the arguments, and those on PATH
    local program version
    for program in "$@" python3 python3.{14,13,12,11,10,9,8}; do
        version=$("$program" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) &&
            say python "$program $version"
    done
}

say_module_system() {
    if [ -n "$LMOD_VERSION" ]; then
        say modules "lmod $LMOD_VERSION"
    elif type module >/dev/null 2>&1; then
        say modules "envmod $(module --version 2>&1 | grep -oE -m 1 '[0-9]+(\.[0-9]+)+')"
    fi
}
