"""Conduct the measurement of every node by itself, inside a batch job.

    python -m seatrial.checks.nodesweep --output FILE -- srun --mpi=pmix -- hpcc

All nodes run the same programs at the same time, each node by itself: memlat on one
core of each socket, HPCC on all cores, fixedwork on all cores, and where there are
several sockets HPCC on the cores of each. Meanwhile `sensors` reads clocks,
temperatures, and counters of errors and of CPU quotas. A node that hangs, dies or has a
failed program is named; the numbers of the others are not affected.
parsers/nodesweep.py reads the file.

The sensors, memlat and fixedwork are one job step each, with a task on every node. HPCC
is an MPI job on each node, so it has a step for each.

The node that runs the batch script is measured too, and starts the steps of all: one
srun for the HPCC of each node waits there. If it dies, so does the job.
"""
