#!/bin/sh
# shellcheck disable=SC3045  # dash and bash have ulimit -l; others print an error
# Print settings of this node and its HCAs; changes nothing. Needs no root, but what only
# root can read is left out without it.
# Usage: node.sh ROOT [SYSCTL...]; ROOT is / of the node, or a folder with sys, proc, etc, and
# programs in tools.
#
# Each source is a block: "@", its name, the program, its version, its exit status and a
# subject, separated by tabs; then its output, each line after a space. The last line is
# "@" and "end". Exit status 124: no end within the time; 126: needs root; 127: no program.
cd "$1" || exit 1
shift
sysctls="kernel.numa_balancing vm.zone_reclaim_mode vm.swappiness kernel.nmi_watchdog
    net.core.rmem_max net.core.wmem_max net.ipv4.tcp_rmem net.ipv4.tcp_wmem $*"
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin:/opt/mellanox/bin
tab=$(printf '\t')

block() { # NAME PROGRAM VERSION STATUS SUBJECT; output from standard input
    printf '@\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5"
    sed 's/^/ /' | awk 1
}

path_of() { # PROGRAM
    if [ "$PWD" = / ]; then command -v "$1"; else printf '%s\n' "$PWD/tools/$1"; fi
}

one_of() { # PROGRAM...: the first that is installed, else the first
    for program; do
        [ ! -x "$(path_of "$program")" ] || { echo "$program"; return; }
    done
    echo "$1"
}

loop= # commands around PROGRAM ($0) and its arguments, in place of one call
run() { # NAME SUBJECT VERSION-OPTION PROGRAM ARGUMENT...
    name=$1 subject=$2 option=$3 program=$4
    shift 4
    file=$(path_of "$program")
    [ -x "$file" ] || { block "$name" "$program" '' 127 "$subject" </dev/null; return; }
    eval "version=\${version_$program-}" # asked once
    if [ -n "$option" ] && [ -z "$version" ]; then
        version=$(timeout 5 "$file" "$option" 2>/dev/null </dev/null | head -n 1 | tr '\t' ' ')
        eval "version_$program=\$version"
    fi
    output=$(timeout --kill-after=2 10 ${loop:+sh -c "$loop"} "$file" "$@" 2>&1 </dev/null)
    status=$?
    [ $status -ne 137 ] || status=124 # killed by timeout
    printf '%s\n' "$output" | block "$name" "$program" "$version" $status "$subject"
}

run_as_root() { # as run
    if [ "$(id -u)" = 0 ]; then run "$@"; else block "$1" "$4" '' 126 "$2" </dev/null; fi
}

values() { grep -saHZ '' "$@" | tr '\000' '\t'; } # lines PATH<TAB>LINE of files

links() { # lines PATH<TAB>TARGET, seen from ROOT
    for link in "$@"; do
        target=$(readlink -e "$link") && printf '%s\t%s\n' "$link" "${target#"${PWD%/}/"}"
    done
}

is_hca() { # by class: InfiniBand, fabric; or Ethernet of who makes only HCAs; or with RDMA
    case $(cat "$1/vendor" "$1/class" 2>/dev/null | tr '\n' ' ') in
    *' 0x0207'* | *' 0x0208'* | '0x15b3 0x0200'* | '0x1d0f '*) ;;
    *) [ -d "$1/infiniband" ] || return 1 ;;
    esac
    case $(cat "$1/vendor" "$1/device" 2>/dev/null | tr '\n' ' ') in
    '0x1d0f 0xefa'* | 0x15b3* | 0x8086* | 0x434e* | 0x14e4*) [ ! -e "$1/physfn" ] ;;
    0x1d0f*) return 1 ;;
    *) [ ! -e "$1/physfn" ] ;;
    esac
}

soft_cards() { # lines DEVICE CARD: RDMA in software, and the card of its interface
    for device in sys/class/infiniband/*; do
        [ ! -e "$device/device" ] && [ -r "$device/parent" ] || continue
        card=$(readlink -e "sys/class/net/$(cat "$device/parent")/device") || continue
        printf '%s %s\n' "$device" "${card%/virtio*}"
    done
}

hcas= # paths of PCI devices, such as sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0
for device in sys/bus/pci/devices/*; do
    ! is_hca "$device" || hcas="$hcas $(readlink -e "$device")"
done
for card in $(soft_cards | cut -d ' ' -f 2 | sort -u); do
    case " $hcas " in *" $card "*) ;; *) hcas="$hcas $card" ;; esac
done

# The HCAs and the ports above them.
chain() {
    for device in $hcas; do
        while case ${device##*/} in *:*:*.*) ;; *) false ;; esac do
            printf '%s\n' "${device#"${PWD%/}/"}"
            device=${device%/*}
        done
    done | sort -u
}
hops=$(chain)

for hop in $hops; do
    values "$hop/vendor" "$hop/device" "$hop/class" "$hop/subsystem_vendor" "$hop/subsystem_device" \
        "$hop/numa_node" "$hop/current_link_speed" "$hop/current_link_width" \
        "$hop/max_link_speed" "$hop/max_link_width"
    links "$hop/driver"
done | block pci sysfs '' 0 ''

{
    values sys/class/infiniband/*/fw_ver sys/class/infiniband/*/board_id \
        sys/class/infiniband/*/hca_type sys/class/infiniband/*/node_guid sys/class/infiniband/*/serial \
        sys/class/infiniband/*/ports/*/state sys/class/infiniband/*/ports/*/phys_state \
        sys/class/infiniband/*/ports/*/rate sys/class/infiniband/*/ports/*/link_layer \
        sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0
    links sys/class/infiniband/*/device
    soft_cards | sed "s|\([^ ]*\) ${PWD%/}/|\1/device$tab|"
    for device in sys/class/infiniband/*; do
        [ -d "$device/device/msi_irqs" ] || continue
        printf '%s/irqs\t%s\n' "$device" "$(cd "$device/device/msi_irqs" && echo *)"
        for irq in "$device"/device/msi_irqs/*; do
            values "proc/irq/${irq##*/}/smp_affinity_list"
        done
    done
    values sys/kernel/config/rdma_cm/*/ports/*/default_roce_tos
} | block rdma_sysfs sysfs '' 0 ''

{
    values sys/class/net/*/mtu sys/class/net/*/mode sys/class/net/*/type sys/class/net/*/operstate \
        sys/class/net/*/ecn/roce_*/enable/*
    links sys/class/net/*/device sys/class/net/*/device/driver
} | block net_sysfs sysfs '' 0 ''

for module in mlx4_core mlx4_ib mlx5_core mlx5_ib ib_ipoib hfi1 bnxt_en bnxt_re efa ice irdma; do
    values "sys/module/$module/version" "sys/module/$module/taint" sys/module/$module/parameters/*
    [ ! -d "sys/module/$module" ] || printf 'sys/module/%s/loaded\tyes\n' "$module"
done | block modules sysfs '' 0 ''

# Per CPU the same values in a few lines: PATH with "*" for the CPU, value, number of CPUs.
values sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor \
    sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/name \
    sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/disable |
    sed 's|/cpu[0-9][0-9]*/|/cpu*/|' | sort | uniq -c |
    sed "s/^ *\([0-9]*\) \(.*\)$/\2$tab\1/" | block cpus sysfs '' 0 ''
grep -sE '^(model name|microcode)' proc/cpuinfo | sort | uniq -c | block cpuinfo procfs '' 0 ''

{
    values sys/class/dmi/id/sys_vendor sys/class/dmi/id/product_name sys/class/dmi/id/product_serial \
        sys/class/dmi/id/bios_version sys/class/dmi/id/bios_date \
        sys/devices/system/cpu/smt/control sys/devices/system/cpu/intel_pstate/no_turbo \
        sys/devices/system/cpu/cpufreq/boost sys/devices/system/node/node*/cpulist \
        sys/kernel/mm/transparent_hugepage/enabled \
        sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages \
        sys/devices/system/edac/mc/mc*/ce_count sys/devices/system/edac/mc/mc*/ue_count \
        proc/cmdline proc/sys/kernel/osrelease etc/os-release
    for sysctl in $sysctls; do
        values "proc/sys/$(printf '%s' "$sysctl" | tr . /)"
    done
    sed -n 's/^ *\(MCE\|MCP\):/interrupts\/\1\t/p' proc/interrupts 2>/dev/null | sed 's/[A-Z][a-z].*//'
    grep -slx irqbalance proc/[0-9]*/comm | sed 's/$/\tirqbalance/' | head -n 1
} | block node_sysfs sysfs '' 0 ''
if [ -e sys/class/dmi/id/product_serial ] && [ ! -r sys/class/dmi/id/product_serial ]; then
    block serial sysfs '' 126 '' </dev/null
fi
ulimit -l | block memlock ulimit '' "$([ -n "$SLURM_JOB_ID" ] && echo 0 || echo 125)" ''

run ofed '' '' ofed_info -s
run devlink '' -V devlink -j dev info
run ibv_devinfo '' '' ibv_devinfo
run_as_root dmidecode '' -V dmidecode -t bios,system,memory
run_as_root ipmitool '' -V ipmitool mc info
if [ -n "$hops" ]; then
    # shellcheck disable=SC2016 # of the inner shell
    # Where it succeeds, its warnings stand in the midst of lines.
    loop='for hop; do
        set -- "$0" -D -n -vv -s "${hop##*/}"
        "$@" 2>/dev/null || exec "$@"
    done'
    # shellcheck disable=SC2086 # paths without spaces
    run lspci '' --version lspci $hops
    loop=
fi
config=$(one_of mstconfig mlxconfig) # of mstflint, or of NVIDIA's MFT
link=$(one_of mstlink mlxlink)
manager=$(one_of mlxfwmanager mlxup)
for device in $hcas; do
    address=${device##*/}
    if [ "$(cat "$device/vendor")" = 0x15b3 ]; then
        run_as_root mstflint "$address" -v mstflint -d "$address" -qq query
        [ -x "$(path_of mstflint)" ] ||
            run_as_root mlxfwmanager "$address" '' "$manager" -d "$address" --query --query-format XML
        run_as_root mstconfig "$address" -v "$config" -d "$address" -e query
        run_as_root mlxlink "$address" --version "$link" -d "$address" --json
    fi
    for interface in "$device"/net/*; do
        [ -d "$interface" ] || continue
        interface=${interface##*/}
        run ethtool_driver "$interface" --version ethtool -i "$interface"
        run ethtool_coalescing "$interface" --version ethtool -c "$interface"
        [ "$(cat "sys/class/net/$interface/type")" = 1 ] || continue # Ethernet
        for table in pfc app buffer; do
            run "dcb_$table" "$interface" -V dcb -j "$table" show dev "$interface"
        done
        run mlnx_qos "$interface" '' mlnx_qos -i "$interface"
    done
done
printf '@\tend\n'
