"""Conduct the measurement of every node by itself, inside a batch job.

    python -m seatrial.checks.nodesweep --output FILE -- srun --mpi=pmix -- hpcc

All nodes run the same programs at the same time, each node by itself: memlat on one
core of each socket, HPCC on all cores, fixedwork on all cores, and where there are
several sockets HPCC on the cores of each. Meanwhile `sensors` reads clocks,
temperatures, and counters of errors and of CPU quotas. A node that hangs, dies or has a
failed program is named; the numbers of the others are not affected.
parsers/nodesweep.py reads the file.

memlat and fixedwork are one job step with a task on every node. The sensors and HPCC,
which is an MPI job on each node, have a step for each node.

The node that runs the batch script is measured too, and starts the steps of all: one
srun for the sensors of each node waits there, and one for its HPCC. If it dies, so does
the job.
"""
