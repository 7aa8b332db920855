"""Conducts `pairsweep` inside a batch job: the sweep goes on without bad nodes.

    python -m seatrial.checks.pairsweep --output FILE -- srun -- pairsweep --validate

A sweep over all pairs is one job step; a node that cannot start it, or a pair that
hangs, would end it without a number. So the nodes are tested before, between and after
(`preflight`), the step is watched and ended where it stands still (`steps`), and begun
again for the pairs that are left (`conductor`). The file tells what was left out and
why; parsers/pairsweep.py reads it.

The node that runs the batch script is part of the sweep. If it dies, so does the job:
then the case fails with Slurm's reason.
"""
