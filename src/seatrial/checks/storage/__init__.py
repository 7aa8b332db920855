"""Conduct IOR or mdtest on a file system, inside a batch job.

    python -m seatrial.checks.storage --output FILE --tool ior .. -- srun .. -- ior

All data is below PATH/seatrial-storage, which one job has at a time. `room` computes
before the start how much it may be: a share of the space that is free. A run that
cannot keep within it is smaller, or refused. `keeper`, a process of its own, removes
the folder when the conductor ends, however it ends. A folder that a job left on a node
that died is removed by the next job.

FILE has the output of each step between lines of `parsers.steps`; the step `space` is a
row of what the file system has, and of what the run takes of it.
"""
