#!/bin/bash
# Solve one environment and put its sources into a mirror; runs on a machine with
# internet. Usage: mirror.sh PREFIX MIRROR ENVIRONMENT PACKAGE...
# Without PACKAGEs takes all. Prints how many were added; all of Spack's output is in
# PREFIX/log.
set -euo pipefail
prefix=$1 mirror=$2 environment=$3
shift 3
packages=("$@")
log=$prefix/log/mirror-${environment##*/}.log
# shellcheck source=/dev/null
. "$prefix/activate.sh"
cd "$prefix/spack-env"
mkdir -p "${log%/*}"
: >"$log"

count() {
    find "$mirror" -type f | wc -l
}

run() {
    if ! spack --color=never -e "$environment" "$@" </dev/null >>"$log" 2>&1; then
        {
            echo "spack -e $environment $* failed; all of it is in $log:"
            grep -A5 -E '^(==> )?Error' "$log" | head -n 25
            echo "sources that are in no mirror:"
            # Advice only: an environment that is not solved has none.
            spack -e "$environment" python "$prefix/steps/missing.py" "$mirror" \
                "${packages[@]}" || true
        } >&2
        exit 1
    fi
}

before=$(count)
run concretize --force
if ((${#packages[@]})); then
    run mirror create --directory "$mirror" --dependencies "${packages[@]}"
else
    run mirror create --directory "$mirror" --all
fi
added=$(($(count) - before))
if ((added)); then
    echo "$environment: $added sources added"
fi
