#!/bin/bash
# shellcheck disable=SC2154  # the caller sets the variables
# Print facts of a login node as lines NAME<TAB>VALUE; run by `bash -l`. Needs the
# variables prefix, token, python, node_script, classes (lines NAME|SBATCH OPTIONS) and
# stacks (lines NAME|MODULE FOLDERS|MODULES|PROGRAMS).
say() { printf '%s\t%s\n' "$1" "$(printf '%s' "$2" | tr '\n\t' '  ')"; }
each() { # print a fact for every line of standard input
    while IFS= read -r line || [ -n "$line" ]; do say "$1" "$line"; done
}

say clock "$(date +%s.%N)"
say host "$(hostname -s)"
say user "$(id -un)"
say architecture "$(uname -m)"
say memlock "$(ulimit -l)"
for program in sbatch srun squeue sinfo scontrol sacct scancel; do
    say "command $program" "$(command -v "$program")"
done
for program in "$python" python3 python3.{14,13,12,11,10,9,8}; do
    version=$("$program" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) &&
        say "python $program" "$version"
done

mkdir -p "$prefix" 2>/dev/null
if printf '%s' "$token" >"$prefix/.doctor-$token" 2>/dev/null; then
    say prefix writable
    trap 'rm -f "$prefix/.doctor-$token"' EXIT
    say prefix_type "$(stat -f -c %T "$prefix")"
    say prefix_free_mib "$(df -Pm "$prefix" | awk 'NR == 2 { print $4 }')"
    say prefix_locks "$(flock --timeout 5 "$prefix/.doctor-$token" echo yes 2>&1)"
fi

if command -v sinfo >/dev/null; then
    say slurm "$(sinfo --version 2>&1)"
    say ping "$(scontrol ping 2>&1 | head -n 1)"
    timeout 60 sinfo -a -h -o '%R|%a|%l' 2>&1 | sort -u | each partition
    timeout 60 sinfo -h -o '%R' 2>/dev/null | sort -u | each visible
    timeout 60 sinfo -a -N -h -o '%N|%R|%T' 2>/dev/null | sort -u | each node
    srun --mpi=list 2>&1 | tr '\n' ' ' | each mpi
    timeout 60 sacctmgr -nP show assoc "user=$(id -un)" format=Account,Partition,QOS 2>/dev/null |
        sort -u | each association
    say accounting "$(scontrol show config 2>/dev/null | awk -F' *= *' '/^AccountingStorageType/ { print $2 }')"
    if errors=$(timeout 60 sacct -X -n -S now-1hour -o JobID 2>&1 >/dev/null); then
        say sacct works
    else
        say sacct_error "$errors"
    fi
fi

say modules "$(type -t module 2>/dev/null && echo "${LMOD_VERSION:+Lmod $LMOD_VERSION}" "${MODULES_CMD:+Environment Modules}")"
while IFS='|' read -r name folders names programs; do
    [ -n "$name" ] || continue
    (
        for folder in $folders; do module use "$folder" 2>&1 | each "stack_error $name"; done
        for module in $names; do
            errors=$(module load "$module" 2>&1) || say "stack_error $name" "module load $module: $errors"
            module load "$module" >/dev/null 2>&1
        done
        for program in $programs; do
            command -v "$program" >/dev/null || say "stack_error $name" "$program is not on PATH"
        done
        say "stack $name" tried
    )
done <<<"$stacks"

while IFS='|' read -r name options; do
    [ -n "$name" ] || continue
    # shellcheck disable=SC2086  # the options of a class are words
    output=$(timeout 180 srun $options --nodes=1 --ntasks=1 --time=2 --immediate=60 --mpi=none \
        --quiet --job-name=seatrial-doctor --chdir=/ \
        sh -c "$node_script" node "$prefix" "$token" "$python" 2>&1 </dev/null)
    printf '%s\n' "$output" | each "class $name"
done <<<"$classes"
say end yes
