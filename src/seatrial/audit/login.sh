#!/bin/bash
# shellcheck disable=SC2154  # the caller sets the variables
# Run a script on all nodes that are ready for a job; run by bash on the login node. Needs the
# variables prefix, token, node_script, root and arguments (of that script), job (its name), and classes (lines
# NAME|HOST LIST|SBATCH OPTIONS|STATES, those of a ready node, separated by commas).
# Prints lines ending in the token: FIELD<TAB>..., then all outputs as a tar archive in base64.
say() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$token"; }

umask 077
folder=$prefix/.audit-$token
if ! error=$(mkdir "$folder" 2>&1); then
    say error login "$error"
    exit 0
fi
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/nodes"
printf '%s' "$node_script" >"$folder/node.sh"

# shellcheck disable=SC2016  # variables of the node
each='sh "$1/node.sh" "$3" $2 >"$1/nodes/$SLURMD_NODENAME.part" && cd "$1/nodes" && mv "$SLURMD_NODENAME.part" "$SLURMD_NODENAME"'
while IFS='|' read -r name nodes options states; do
    [ -n "$name" ] || continue
    mapfile -t hosts < <(scontrol show hostnames "$nodes" 2>/dev/null)
    [ ${#hosts[@]} -gt 0 ] || { say error "$name" "no host list: $nodes"; continue; }
    for _ in {1..10}; do # until the last job has left its nodes
        declare -A state=()
        ending=0
        while IFS='|' read -r host word; do state[$host]=$word; done < <(timeout 60 sinfo -a -N -h -o '%N|%T')
        for host in "${hosts[@]}"; do [ "${state[$host]:-}" != completing ] || ending=1; done
        [ "$ending" = 1 ] || break
        sleep 2
    done
    ready=()
    for host in "${hosts[@]}"; do
        say node "$name" "$host"
        word=${state[$host]:-unknown to Slurm}
        case ",$states," in
        *",$word,"*) ready+=("$host") ;;
        *) say state "$host" "$word" ;;
        esac
    done
    [ ${#ready[@]} -gt 0 ] || continue
    list=$(IFS=, && echo "${ready[*]}")
    eval "set -- $options"
    minutes=$((3 + ${#ready[@]} / 128)) # a step of many nodes starts slowly on a busy controller
    timeout $((60 * minutes + 120)) srun "$@" --nodes=${#ready[@]} --ntasks=${#ready[@]} --ntasks-per-node=1 --nodelist="$list" \
        --time=$minutes --immediate=60 --mpi=none --quiet --no-kill --job-name="$job" --chdir=/ \
        sh -c "$each" node "$folder" "$arguments" "$root" 2>&1 </dev/null |
        while IFS= read -r line; do [ -z "$line" ] || say error "$name" "$line"; done
done <<<"$classes"
rm -f "$folder"/nodes/*.part
printf 'data\t\t\t%s\n' "$token"
tar -C "$folder/nodes" -cz . | base64
say end login ''
