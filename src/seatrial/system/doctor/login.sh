#!/bin/bash
# shellcheck disable=SC2154  # the caller sets the variables
# Print facts of a login node; run by `bash -l` after facts.sh. Needs the variables
# prefix, token, python, commands, node_script, classes (lines NAME|HOST LIST|SBATCH
# OPTIONS) and stacks (lines NAME|MODULE FOLDERS|MODULES|PROGRAMS).

subject=login
say clock "$(date +%s.%N)"
say host "$(hostname -s)"
say user "$(id -un)"
say architecture "$(uname -m)"
say libc "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
say memlock "$(ulimit -l)"
for program in $commands; do
    command -v "$program" >/dev/null || say missing "$program"
done
say_pythons "$python"
say_module_system

mkdir -p "$prefix" 2>/dev/null
if printf '%s' "$token" 2>/dev/null >"$prefix/.doctor-$token"; then
    trap 'rm -f "$prefix/.doctor-$token"' EXIT
    say prefix_type "$(stat -f -c %T "$prefix")"
    say prefix_free_mib "$(df -Pm "$prefix" | awk 'NR == 2 { print $4 }')"
    say prefix_locks "$(flock --timeout 5 "$prefix/.doctor-$token" echo yes 2>&1)"
fi

if command -v sinfo >/dev/null; then
    say slurm "$(sinfo --version 2>&1)"
    say ping "$(scontrol ping 2>&1 | head -n 1)"
    timeout 60 sinfo -a -h -o '%R|%a|%l' 2>/dev/null | sort -u | say_lines partition
    timeout 60 sinfo -h -o '%R' 2>/dev/null | sort -u | say_lines visible
    timeout 60 sinfo -a -N -h -o '%N|%R|%T' 2>/dev/null | sort -u | say_lines node
    say mpi "$(srun --mpi=list 2>&1 | tr '\n' ' ')"
    timeout 60 sacctmgr -nP show assoc "user=$(id -un)" format=Account,Partition,QOS 2>/dev/null |
        sort -u | say_lines association
    timeout 60 sacctmgr -nP show qos format=Name,MaxTRES,MaxTRESPU,MaxWall 2>/dev/null |
        say_lines qos
    say sacct "$(timeout 60 sacct -X -n -S now-1hour -o JobID 2>&1 >/dev/null || echo "sacct: exit status $?")"
fi

errors=$(mktemp)
while IFS='|' read -r name folders modules programs; do
    [ -n "$name" ] || continue
    subject="stack $name"
    (
        for folder in $folders; do
            if [ -d "$folder" ]; then module use "$folder"; else say error "no folder $folder"; fi
        done
        for module in $modules; do # with a file: in a pipe, module would load nothing here
            module load "$module" >"$errors" 2>&1 ||
                say error "module load $module: $(grep -v '^ *$' "$errors" | head -n 3)"
        done
        for program in $programs; do
            command -v "$program" >/dev/null || say error "$program is not on PATH"
        done
    ) 2>/dev/null
done <<<"$stacks"
rm -f "$errors"

while IFS='|' read -r name nodes options; do
    [ -n "$name" ] || continue
    subject="class $name"
    [ -z "$nodes" ] || scontrol show hostnames "$nodes" 2>/dev/null | say_lines delivered
    eval "set -- $options"
    timeout 180 srun "$@" --nodes=1 --ntasks=1 --time=2 --immediate=60 --mpi=none \
        --quiet --job-name=seatrial-doctor --chdir=/ \
        sh -c "$node_script" node "$prefix" "$token" "$python" 2>&1 </dev/null |
        while IFS= read -r line || [ -n "$line" ]; do
            case $line in
            "$token"$'\t'*) printf '%s%s\n' "$subject" "${line#"$token"}" ;;
            *) say error "$line" ;;
            esac
        done
done <<<"$classes"
subject=login
say end yes
