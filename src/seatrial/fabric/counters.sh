#!/bin/sh
# Print the counters of the ports and Ethernet interfaces of this node; changes nothing, needs no root.
# Usage: counters.sh ROOT [INTERFACE...]; ROOT is / of the node, or a folder with sys and proc, and
# programs in tools. Interfaces of RDMA devices are read without being named.
#
# Blocks are those of audit/node.sh: "@", name, program, version, exit status, subject; then the
# output, each line after a space. The last line is "@" and "end".
cd "$1" || exit 1
shift
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin

block() { # NAME PROGRAM STATUS SUBJECT; output from standard input
    printf '@\t%s\t%s\t\t%s\t%s\n' "$1" "$2" "$3" "$4"
    sed 's/^/ /' | awk 1
}

values() { grep -saHZ '' "$@" | tr '\000' '\t'; } # lines PATH<TAB>LINE of files

interfaces() { # of RDMA devices, and NAME...
    for port in sys/class/infiniband/*/ports/*; do
        [ "$(cat "$port/link_layer" 2>/dev/null)" = Ethernet ] || continue
        cat "$port/gid_attrs/ndevs/0" 2>/dev/null
    done
    for interface; do printf '%s\n' "$interface"; done
}
names=$(interfaces "$@" | sort -u)

{
    printf 'time\t%s\n' "$(date +%s.%N)"
    values proc/sys/kernel/random/boot_id \
        sys/class/infiniband/*/ports/*/link_layer sys/class/infiniband/*/ports/*/state \
        sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0 \
        sys/class/infiniband/*/ports/*/counters/* sys/class/infiniband/*/ports/*/hw_counters/* \
        sys/class/infiniband/*/hw_counters/*
    for name in $names; do
        values "sys/class/net/$name/operstate" "sys/class/net/$name/carrier_down_count" \
            "sys/class/net/$name"/statistics/*
    done
} | block counters sysfs 0 ''

ethtool=$(if [ "$PWD" = / ]; then command -v ethtool; else echo "$PWD/tools/ethtool"; fi)
for name in $names; do
    [ -x "$ethtool" ] || { block ethtool ethtool 127 "$name" </dev/null; continue; }
    output=$(timeout --kill-after=2 10 "$ethtool" -S "$name" 2>&1 </dev/null)
    status=$?
    [ $status -ne 137 ] || status=124 # killed by timeout
    # Without the thousands of lines on single queues and channels.
    printf '%s\n' "$output" |
        grep -vE '^ *(\[[0-9]+\]:|(rx|tx|ch)[-_]?(queue_|xdp|xsk)?[0-9]+[-_.])' |
        block ethtool ethtool $status "$name"
done
printf '@\tend\n'
