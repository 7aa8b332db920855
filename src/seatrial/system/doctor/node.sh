#!/bin/sh
# shellcheck disable=SC3045  # dash and bash have ulimit -l; others print an error
# Print facts of a compute node as lines TOKEN<TAB>NAME<TAB>VALUE.
# Arguments: prefix, token, Python.
token=$2
say() { printf '%s\t%s\t%s\n' "$token" "$1" "$(printf '%s' "$2" | tr '\n\t' '  ')"; }

say clock "$(date +%s.%N)"
say node "${SLURMD_NODENAME:-}"
say host "$(hostname -s)"
say architecture "$(uname -m)"
say memlock "$(ulimit -l)"
say token "$(cat "$1/.doctor-$token" 2>/dev/null)"
touch "$1/.doctor-$token-node" 2>/dev/null && say writable yes
rm -f "$1/.doctor-$token-node"
{ exec 9<"$1/.doctor-$token"; } 2>/dev/null && flock --shared --timeout 5 9 2>/dev/null && say locks yes
[ "$3" = bundled ] || say python "$("$3" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>&1 | tail -n 1)"
[ -d "$1/venv" ] && say suite "$("$1/venv/bin/python" -I -c 'import seatrial; print("runs")' 2>&1 | tail -n 1)"
say perftest_lacks "$(
    for name in ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_write_bw; do
        command -v "$name" >/dev/null || printf '%s ' "$name"
    done
)"
if find "$1"/benchmarks/*/bin -prune 2>/dev/null | grep -q .; then
    say verbs_lacks "$(
        for bin in "$1"/benchmarks/*/bin; do
            for name in mp_rdma_bw mp_rdma_lat mqp_lat mr_cost pairsweep_verbs winbw; do
                [ -x "$bin/$name" ] || printf '%s ' "$name"
            done
        done
    )"
fi
program=$(mktemp) && {
    printf '#!/bin/sh\necho yes\n' >"$program"
    chmod +x "$program"
    say tmp_runs "$("$program" 2>/dev/null)"
    rm -f "$program"
}
say tmp_free_mib "$(df -Pm /tmp | awk 'NR == 2 { print $4 }')"
say end yes
