#!/bin/bash
# Print the versions of Python and Slurm, a line each; run by a login shell.
python=$1
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "suite_python: $python is no Python of at least 3.11; found" \
        "$("$python" --version 2>&1); install one and name it" >&2
    exit 1
}
"$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
slurm=$(sinfo --version 2>&1) || {
    echo "no Slurm client here (sinfo --version: $slurm); the first host of the group" \
        "login must be one that submits jobs" >&2
    exit 1
}
echo "${slurm##* }"
