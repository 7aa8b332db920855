#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ring.sh LAUNCHER [OPTION]... -- PROGRAM [ARGUMENT]...
#
# Run PROGRAM with two ranks on every pair of neighbours in the ring of the job's
# nodes, one job step after the other. A line "# pair A B" goes before the output of
# each. Two nodes are one pair.
set -euo pipefail

launcher=()
while [ "$1" != -- ]; do
    launcher+=("$1")
    shift
done
shift

readarray -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
count=${#nodes[@]}
pairs=$((count == 2 ? 1 : count))
for ((i = 0; i < pairs; i++)); do
    pair=("${nodes[i]}" "${nodes[(i + 1) % count]}")
    echo "# pair ${pair[*]}"
    # srun gives up at once when the controller is away for a moment.
    until scontrol ping >/dev/null 2>&1; do sleep 1; done
    "${launcher[@]}" --nodes=2 --ntasks=2 --ntasks-per-node=1 \
        --nodelist="${pair[0]},${pair[1]}" "$@"
done
