"""Conduct the measurement of every node by itself, inside a batch job.

    python -m seatrial.checks.nodesweep --output FILE -- srun --mpi=pmix -- hpcc

All nodes run the same programs at the same time, each node in job steps of its own:
memlat on one core of each socket, HPCC on all cores, fixedwork on all cores, and where
there are several sockets HPCC on the cores of each; meanwhile `sensors` reads clocks,
temperatures, and counters of errors and of CPU quotas. A node that hangs, dies or has a
failed program is named; the numbers of the others are not affected.
parsers/nodesweep.py reads the file.

The node that runs the batch script is measured too, and starts the steps of all: one
srun for each node waits there. If it dies, so does the job.
"""
