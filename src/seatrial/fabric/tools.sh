#!/bin/bash
# shellcheck disable=SC2154  # the caller sets the variables
# Run tools of the fabric on each active InfiniBand port, as root if sudo allows it. Needs the
# variables token and tools (lines: a tool with its arguments).
# Prints a line ending in the token, then status, output and messages of all as a tar archive in base64.
umask 077
PATH=$PATH:/usr/sbin:/sbin
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

shopt -s nullglob
device=(/dev/infiniband/umad*)
as=()
if [ "$(id -u)" != 0 ] && [ ${#device[@]} -gt 0 ] && [ ! -w "${device[0]}" ] && sudo -n true 2>/dev/null; then
    as=(sudo -n)
fi
ports=()
for port in /sys/class/infiniband/*/ports/*; do
    [ "$(cat "$port/link_layer")" = InfiniBand ] || continue
    case $(cat "$port/state") in
    *ACTIVE*)
        hca=${port%/ports/*}
        ports+=("-C ${hca##*/} -P ${port##*/}")
        ;;
    esac
done
[ ${#ports[@]} -gt 1 ] || ports=("") # the tools find a single port themselves

number=0
while read -r name arguments; do
    command -v "$name" >/dev/null || continue
    version=$("${as[@]}" "$name" --version 2>&1 | head -n 1)
    for port in "${ports[@]}"; do
        number=$((number + 1))
        # shellcheck disable=SC2086  # words of the caller and of this script
        "${as[@]}" "$name" $port $arguments >"$folder/$number.out" 2>"$folder/$number.err" </dev/null
        printf '%s|%s|%s|%s|%s\n' $? "$name" "$arguments" "$port" "$version" >"$folder/$number.run"
    done
done <<<"$tools"
printf '\n%s %s\n' "$(hostname -s)" "$token"
tar -C "$folder" -cz . | base64
