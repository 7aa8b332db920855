#!/bin/bash
# Run the suite's Python in a job on a node of a class; run by a login shell.
# Usage: try_python.sh PYTHON STAMP CLASS SRUN-OPTION...
# Writes STAMP if it runs. Without a free node, prints a sentence and exits with 0.
python=$1 stamp=$2 class=$3
shift 3
# shellcheck disable=SC2016  # the node expands it
output=$(timeout 180 srun "$@" --nodes=1 --ntasks=1 --time=2 --immediate=60 --mpi=none \
    --quiet --job-name=seatrial-python --chdir=/ sh -c \
    'echo "seatrial on $SLURMD_NODENAME"; exec "$1" -I -c "import seatrial"' sh "$python" \
    2>&1 </dev/null)
status=$?
node=$(sed -n 's/^seatrial on //p' <<<"$output")
cause=$(tail -n 1 <<<"$output")
if [ -z "$node" ]; then
    echo "class $class: no node within 60 s ($cause); \`seatrial doctor\` tries again"
elif [ "$status" -ne 0 ]; then
    echo "class $class: $python does not run on $node: $cause; PairSweep and NodeSweep need" \
        "it there: install suite_python on all nodes, or name one below a folder that all" \
        "nodes share, and run site.yml again" >&2
    exit 1
else
    touch "$stamp"
fi
