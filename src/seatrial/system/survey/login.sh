#!/bin/bash
# Print facts of a cluster that has no inventory yet; run by `bash -l` after facts.sh. It
# changes nothing, and submits no job.
# shellcheck disable=SC2034  # facts.sh prints it
subject=login
families='(openmpi|mpich|mvapich|impi|intel-?mpi|intel-oneapi-mpi|cray-mpich|hpcx)'

slurm() { # print the lines of a command of Slurm as facts of a name
    local name=$1
    shift
    timeout 120 "$@" 2>/dev/null | say_lines "$name"
}

say_slurm() {
    local name
    say slurm "$(sinfo --version 2>&1)"
    slurm config scontrol show config
    slurm member sinfo -a -N -h -o '%N|%R'
    slurm visible sinfo -h -o '%R'
    slurm node scontrol -a -o show node
    slurm partition scontrol -a -o show partition
    slurm reservation scontrol -o show reservation
    scontrol -o show reservation 2>/dev/null | grep -oE '\bNodes=[^ ]+' | cut -d= -f2 | sort -u |
        while IFS= read -r name; do
            say hosts "$name|$(scontrol show hostnames "$name" 2>/dev/null | tr '\n' ' ')"
        done
    slurm association sacctmgr -nP show assoc "user=$(id -un)" format=Account,Partition,QOS
    slurm default_account sacctmgr -nP show user "$(id -un)" format=DefaultAccount
    say mpi "$(srun --mpi=list 2>&1 | tr '\n' ' ')"
}

say_folders() { # folders of the user, and file systems of the network
    local name folder
    for name in HOME WORK WORKDIR PROJECT SCRATCH; do
        folder=${!name}
        [ -d "$folder" ] && [ -w "$folder" ] && say folder \
            "$name|$folder|$(stat -f -c %T "$folder")|$(df -Pm "$folder" | awk 'NR == 2 { print $4 }')"
    done
    awk '$3 ~ /^(nfs|lustre|gpfs|beegfs|ceph|wekafs|panfs|pvfs2|fuse\.)/ { print $2 "|" $3 }' \
        /proc/mounts | say_lines mount
}

say_adapters() {
    local folder name
    for folder in /sys/class/infiniband/*/ports/*; do
        [ -d "$folder" ] || continue
        name=${folder#/sys/class/infiniband/}
        say adapter "${name%%/*}:${folder##*/} $(cat "$folder/link_layer" "$folder/rate" 2>/dev/null | tr '\n' ' ')"
    done
}

module_names() { # print all modules, those of Lmod's hierarchies too
    {
        module -t avail 2>&1
        [ -z "$LMOD_VERSION" ] || module -t spider 2>&1
    } | sed 's/[(<].*//; s/ *->.*//; s/^ *//' | grep -vE '[:/] *$|^$' | sort -uV
}

prerequisites() { # print the modules to load before one of Lmod; the last line is the newest
    module spider "$1" 2>&1 | awk '
        /You will need to load all module/ { wanted = 1; next }
        /^ *Help:/ { exit }
        wanted && /^ *$/ { if (lines) exit; next }
        wanted && /is available to load/ { next }
        wanted { lines++; print }' | sed 's/^ *//; s/ *$//; s/  */ /g' | sort -V | tail -n 1
}

say_compilers() { # print the MPI compilers on PATH, after modules that a stack needs
    local stack=$1 name folder
    for name in mpiicx mpiicc mpicc.openmpi mpicc.mpich mpicc cc; do
        [ "$name" != cc ] || [[ $stack == *cray* ]] || continue
        folder=$(dirname "$(command -v "$name")" 2>/dev/null) && [ "$folder" != . ] || continue
        say compiler "$stack|$name|$folder|$([ ! -x "$folder/IMB-MPI1" ] || echo IMB-MPI1)|$("$name" -show 2>/dev/null | head -n 1)"
    done
}

say_stacks() { # the newest module of each MPI; it is loaded in a shell of its own
    local modules available name needs
    say_compilers ''
    type module >/dev/null 2>&1 || return
    modules=$(module_names | grep -iE "^((mpi/|devel/|parallel/)?${families}[^/]*(/[^/]+)*|mpi/20[0-9.]+)\$")
    available=$(module -t avail 2>&1 | sed 's/(.*//')
    say_lines module <<<"$modules"
    awk '{ name = $0; sub(/\/v?[0-9][^\/]*$/, "", name); newest[name] = $0 }
        END { for (name in newest) print newest[name] }' <<<"$modules" | sort | head -n 12 |
        while IFS= read -r name; do
            [ -n "$name" ] || continue
            needs=
            [ -z "$LMOD_VERSION" ] || grep -qxF "$name" <<<"$available" || needs=$(prerequisites "$name")
            ( # with a pipe at the end, module would load nothing here
                for module in $needs "$name"; do
                    module load "$module" >/dev/null 2>&1 || say failure "$needs $name|$module"
                done
                say_compilers "$needs $name"
            )
        done
}

survey() {
    local program file pythons
    say host "$(hostname -s)"
    say user "$(id -un)"
    say groups "$(id -Gn)"
    say architecture "$(uname -m)"
    mapfile -t pythons < <(type -P python3 python3.{14,13,12,11,10,9,8})
    say_pythons "${pythons[@]}"
    say_module_system
    for program in sinfo scontrol sbatch srun; do
        command -v "$program" >/dev/null || say missing "$program"
    done
    if command -v scontrol >/dev/null; then say_slurm; fi
    say_folders
    say_adapters
    for file in /usr/lib64/libpmi2.so /usr/lib/*/libpmi2.so.0 /usr/lib/*/libpmi2.so /opt/slurm/lib*/libpmi2.so; do
        [ -e "$file" ] && say pmi2 "$file"
    done
    say_stacks
    say end yes
}

survey </dev/null # so that no command reads the script, which is bash's standard input
