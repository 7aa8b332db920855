#!/bin/bash
# Print the version of Slurm; run by a login shell.
slurm=$(sinfo --version 2>&1) || {
    echo "no Slurm client here (sinfo --version: $slurm); the first host of the group" \
        "login must be one that submits jobs" >&2
    exit 1
}
echo "${slurm##* }"
