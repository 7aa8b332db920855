"""Stand-ins for benchmarks: the output of a model machine whose truth is known.

    python -m seatrial.standins draw --nodes 'mn[0001-0256]' --seed 7 >truth.yaml
    python -m seatrial.standins install FOLDER --truth truth.yaml

FOLDER/bin then has an executable for each program that the campaigns run: our own
benchmarks, IMB, OSU, HPCC, NPB, LAMMPS, IOR and mdtest. Each prints on rank 0 the whole
output of the real program, of the machine that the truth describes, and ends at once on
all other ranks. So the whole way from the driver to the report runs at any scale, and
the faults that it has to find are known. Nothing is measured: all numbers are of a
model.

Effects that last follow from the seed and the names of nodes; noise follows from the
seed, the job and the step. So repeats differ, and a job can be reproduced.

The package imports nothing of seatrial: what the suite reads from the output must not
have been computed by its own code. `run` and what it imports are copied to FOLDER,
where a Python without packages starts them: they import little, since 1,024 nodes start
them by themselves on a few cores.
"""
