#!/bin/bash
# Solve the environment of one MPI and put its sources into a mirror; runs on a machine
# with internet. Usage: mirror.sh PREFIX MIRROR MPI
# Prints how many were added; all of Spack's output is in PREFIX/log/mirror-MPI.log.
set -euo pipefail
prefix=$1 mirror=$2 mpi=$3
environment=apps/$mpi
log=$prefix/log/mirror-$mpi.log
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
            spack -e "$environment" python "$prefix/steps/missing.py" "$mirror" || true
        } >&2
        exit 1
    fi
}

before=$(count)
run concretize --force
run mirror create --directory "$mirror" --all
added=$(($(count) - before))
if ((added)); then
    echo "$mpi: $added sources added"
fi
