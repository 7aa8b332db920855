#!/bin/sh
# Print "NODE {facts as JSON}" of this node in one line.
# Usage: node_facts.sh [NODE [FOLDER OF SYSFS]]; srun sets SLURMD_NODENAME.
node=${1:-${SLURMD_NODENAME:-$(hostname -s)}}
sys=${2:-/sys}
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin

text() { # "key": "value" without what JSON cannot hold
    printf '"%s": "%s"' "$1" "$(printf '%s' "$2" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

list_hcas() { # a driver of the kernel itself has no version of its own
    separator=
    for hca in "$sys"/class/infiniband/*; do
        [ -d "$hca" ] || continue
        module=$(readlink -e "$hca/device/driver/module") || module=
        version=
        [ -r "$module/version" ] && version=" $(cat "$module/version")"
        printf '%s{%s, %s, %s, %s}' "$separator" "$(text name "${hca##*/}")" \
            "$(text firmware "$(cat "$hca/fw_ver" 2>/dev/null)")" \
            "$(text board "$(cat "$hca/board_id" 2>/dev/null)")" \
            "$(text driver "${module##*/}$version")"
        separator=", "
    done
}

# A row of lscpu is an online CPU: its core (unique within a socket) and socket.
counts=$(lscpu -p=CPU,CORE,SOCKET | awk -F, '
    /^[0-9]/ { cpus++; cores[$2 "," $3]; sockets[$3] }
    END {
        for (core in cores) c++
        for (socket in sockets) s++
        if (cpus) printf "\"cpus\": %d, \"sockets\": %d, \"cores_per_socket\": %d, \"threads_per_core\": %d",
            cpus, s, c / s, (cpus + c - 1) / c
    }')
[ -n "$counts" ] || { echo "$node: lscpu lists no CPU" >&2; exit 1; }
model=$(lscpu | sed -n 's/^Model name: *//p' | head -n 1)
memory=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
# shellcheck disable=SC1091  # of the node
os=$(. /etc/os-release && echo "$NAME $VERSION_ID")
printf '%s {%s, "memory_mib": %s, %s, %s, %s, %s, "hcas": [%s]}\n' "$node" "$counts" \
    "$memory" "$(text cpu_model "${model:-unknown}")" "$(text os "$os")" \
    "$(text kernel "$(uname -r)")" "$(text architecture "$(uname -m)")" "$(list_hcas)"
