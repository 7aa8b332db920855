#!/bin/sh
# Print name|firmware|board|driver of every HCA, a line each; nothing on a node without.
# Usage: hcas.sh [FOLDER OF SYSFS]
sys=${1:-/sys}
for hca in "$sys"/class/infiniband/*; do
    [ -d "$hca" ] || continue
    module=$(readlink -e "$hca/device/driver/module") || module=
    version=
    # A driver of the kernel itself has no version of its own.
    [ -r "$module/version" ] && version=" $(cat "$module/version")"
    echo "${hca##*/}|$(cat "$hca/fw_ver" 2>/dev/null)|$(cat "$hca/board_id" 2>/dev/null)|${module##*/}$version"
done
