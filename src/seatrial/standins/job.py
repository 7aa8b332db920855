"""The step that a stand-in runs in: its nodes and ranks, as Slurm tells them."""

import os

from seatrial.standins.hostlist import expand


class Job:
    """A step of Slurm, or a single rank on this machine if there is no Slurm.

    `nodes` and `ppn` are those of the step, `key` is its number within the system, and
    `node` the one that this process runs on. `clock_khz` is what srun was asked for.
    """

    def __init__(self, environment: "os._Environ[str] | dict[str, str]") -> None:
        """Read the variables of srun; ValueError if the list of nodes is damaged."""
        get = environment.get
        self.node = get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]
        listed = get("SLURM_STEP_NODELIST") or get("SLURM_JOB_NODELIST")
        self.nodes = expand(listed) if listed else [self.node]
        ranks = get("SLURM_STEP_NUM_TASKS") or get("SLURM_NTASKS") or "1"
        self.ranks = int(ranks)
        self.ppn = -(-self.ranks // len(self.nodes))
        asked = get("SLURM_CPU_FREQ_REQ", "")
        self.clock_khz = int(asked) if asked.isdecimal() else None
        self.is_cyclic = get("SLURM_DISTRIBUTION", "").startswith("cyclic")
        self.key = f"{get('SLURM_JOB_ID', '0')}.{get('SLURM_STEP_ID', '0')}"

    def node_of(self, rank: int) -> str:
        """Return the node of a rank: nodes are filled, or take turns."""
        count = len(self.nodes)
        return self.nodes[rank % count if self.is_cyclic else rank // self.ppn]
