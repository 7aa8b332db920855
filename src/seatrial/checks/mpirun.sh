#!/bin/bash
# Written by Seatrial: starts a program by the stack's own mpirun inside a job.
# Usage: mpirun.sh KIND MPIRUN [OPTION]... PROGRAM [ARGUMENT]...
# KIND is openmpi (4 and 5) or hydra (MPICH, Intel MPI, MVAPICH). The options are those of
# srun that checks use. Programs without MPI (--mpi=none) are started by srun.
set -u
kind=$1 mpirun=$2
shift 2
given=("$@")
nodes=${SLURM_JOB_NUM_NODES-} ranks=${SLURM_NTASKS-} per_node='' names=''
order='' binding='' folder=.
while [[ ${1-} == --* ]]; do
    value=${1#*=}
    case $1 in
    --nodes=*) nodes=$value ;;
    --ntasks=*) ranks=$value ;;
    --ntasks-per-node=*) per_node=$value ;;
    --nodelist=*) names=$value ;;
    --distribution=block | --distribution=cyclic) order=$value ;;
    --cpu-bind=*) binding=$value ;;
    --chdir=*) folder=$value ;;
    --mpi=none) exec srun "${given[@]}" ;;
    --mpi=* | --job-name=* | --overlap | --kill-on-bad-exit=*) ;; # as mpirun does
    *)
        echo "mpirun.sh: error: mpirun has no option like srun's $1" >&2
        exit 2
        ;;
    esac
    shift
done
case $binding in
'' | none) ;;
cores) binding=core ;;
ldoms) binding=numa ;;
*)
    echo "mpirun.sh: error: --cpu-bind=$binding: expected cores, ldoms or none" >&2
    exit 2
    ;;
esac
cd "$folder" || exit 2
names=${names:-$SLURM_JOB_NODELIST}
if [[ $names == *[[,]* ]]; then
    names=$(scontrol show hostnames "$names" | head -n "$nodes" | paste -sd,)
fi
per_node=${per_node:-$(((ranks + nodes - 1) / nodes))}

# mpirun takes the nodes and ranks of this step for those of the job; its daemons may
# share nodes with other steps, and must not be bound to one core.
unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_DISTRIBUTION
export SLURM_JOB_NODELIST=$names SLURM_NODELIST=$names
export SLURM_JOB_NUM_NODES=$nodes SLURM_NNODES=$nodes
export SLURM_TASKS_PER_NODE="$per_node(x$nodes)"
export SLURM_OVERLAP=1 SLURM_CPU_BIND=none SLURM_MPI_TYPE=none

options=()
case $kind in
openmpi)
    options+=(--map-by "$([ "$order" = cyclic ] && echo node || echo slot)")
    [ -n "$binding" ] && options+=(--bind-to "$binding")
    exec "$mpirun" -np "$ranks" "${options[@]}" "$@"
    ;;
hydra)
    # Intel MPI otherwise places ranks as Slurm's tasks, and binds by its own variables.
    export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0
    case $binding in
    none) export I_MPI_PIN=0 ;;
    ?*) export I_MPI_PIN=1 I_MPI_PIN_DOMAIN=$binding ;;
    esac
    # MVAPICH binds in MPI_Init otherwise.
    [ -n "$binding" ] && export MV2_ENABLE_AFFINITY=0 MVP_ENABLE_AFFINITY=0
    if [ -n "$binding" ] && ! "$mpirun" --version 2>&1 | grep -q Intel; then
        options+=(-bind-to "$binding")
    fi
    [ "$order" = cyclic ] && per_node=1
    exec "$mpirun" -bootstrap slurm -hosts "$names" -ppn "$per_node" -n "$ranks" \
        "${options[@]}" "$@"
    ;;
esac
