#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ring.sh LAUNCHER [OPTION]... -- PROGRAM [ARGUMENT]...
#
# Run PROGRAM with two ranks on every pair of neighbours in the ring of the job's
# nodes, one job step after the other. A line "# pair A B" goes before the output of
# each. Two nodes are one pair.
set -euo pipefail
# shellcheck source=/dev/null
. "$(dirname "$0")/start.sh"

launcher=()
while [ "$1" != -- ]; do
    launcher+=("$1")
    shift
done
shift

# Repeat a step if Slurm's controller refuses it for a moment, or if its MPI library
# crashes at start; all messages stay on standard error.
run_step() {
    local attempt errors printed
    errors=$(mktemp -p .)
    for attempt in {1..30}; do
        printed=$(size 1)
        "$@" 2>"$errors" && break
        cat "$errors" >&2
        crashed_at_start "${pair[0]}-${pair[1]}" "$printed" "$errors" && continue
        grep -qE 'Unable to (create step|confirm allocation)' "$errors" || exit 1
        [ "$attempt" -lt 30 ] || exit 1
        sleep 2
    done
    rm "$errors"
}

readarray -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
count=${#nodes[@]}
pairs=$((count == 2 ? 1 : count))
for ((i = 0; i < pairs; i++)); do
    pair=("${nodes[i]}" "${nodes[(i + 1) % count]}")
    echo "# pair ${pair[*]}"
    run_step "${launcher[@]}" --nodes=2 --ntasks=2 --ntasks-per-node=1 \
        --nodelist="${pair[0]},${pair[1]}" "$@"
done
