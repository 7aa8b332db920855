"""HPL of several groups of the nodes of a job, all at the same time.

    python -m seatrial.checks.hplsweep --output FILE [OPTION].. -- SRUN.. -- XHPL..

A group is a node, or the nodes of a rack (`--group rack1=cn01,cn02`). Each has its own
job step, its own matrix and its own folder with HPL.dat and output; folders of failed
groups stay. A group that fails, hangs or loses a node does not disturb the others.
FILE has a row for each group: see `seatrial.parsers.hplsweep`.
"""
