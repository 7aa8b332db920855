"""`lmp`: the benchmarks of LAMMPS, in the format of July 2025."""

from collections.abc import Iterator

from seatrial.standins.lammps_problems import ATOMS, PROBLEMS, STEPS, Problem
from seatrial.standins.run import Run, UsageError

_MESSAGES = 24
"""Messages in a row of each step."""

_SHARES = (("Neigh", 0.13), ("Output", 0.001), ("Modify", 0.03))
"""Parts of the time in computation, besides Pair, which has the rest."""


def lmp(run: Run) -> Iterator[str]:
    """Print the log of the input of -in; -var x, y and z multiply the system."""
    run.expect("-log", "-var", "-in")
    problem, copies = _problem(run)
    loop_s, sections = _sections(run, problem, copies)
    run.seconds = loop_s
    yield "LAMMPS (22 Jul 2025 - model of a machine: nothing was measured)"
    yield "  using 1 OpenMP thread(s) per MPI task"
    yield "Per MPI rank memory allocation (min/avg/max) = 5.881 | 5.881 | 5.881 Mbytes"
    yield from problem.table(copies)
    atoms, ranks = copies * ATOMS, run.job.ranks
    in_all = f"{STEPS} steps with {atoms} atoms"
    yield f"Loop time of {loop_s:.6g} on {ranks} procs for {in_all}"
    yield ""
    rate = STEPS / loop_s
    yield f"Performance: {rate:.3f} timesteps/s, {rate * atoms / 1e3:.3f} katom-step/s"
    yield f"99.3% CPU use with {ranks} MPI tasks x 1 OpenMP threads"
    yield "\nMPI task timing breakdown:"
    yield "Section |  min time  |  avg time  |  max time  |%varavg| %total"
    yield "---------------------------------------------------------------"
    for name, seconds in sections.items():
        share = f"{100 * seconds / loop_s:>6.2f}"
        if name == "Other":
            empty = f"{'|':<13}"
            yield f"{name:<8}{empty}| {seconds:<11.4g}{empty}|       |{share}"
            continue
        spread = 0.0 if ranks == 1 else 0.01
        cells = (seconds * (1 - spread), seconds, seconds * (1 + spread))
        times = "".join(f"| {value:<11.5g}" for value in cells)
        yield f"{name:<8}{times}|{100 * spread:>6.1f} |{share}"
    yield f"\nNeighbor list builds = {problem.builds}"
    yield f"Dangerous builds {problem.danger}"
    minutes, seconds = divmod(int(loop_s), 60)
    yield f"Total wall time: {minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _problem(run: Run) -> tuple[Problem, int]:
    """Return the problem and the number of copies that the arguments name."""
    name = run.options.get("-in", "")
    problem = PROBLEMS.get(name.removeprefix("in.").removesuffix(".scaled"))
    if problem is None or not name.startswith("in."):
        raise UsageError(f"-in {name}, expected in. and {', '.join(PROBLEMS)}")
    copies = 1
    words = run.arguments
    for at, word in enumerate(words):
        if word == "-var":
            copies *= int(words[at + 2])
    return problem, copies


def _sections(
    run: Run, problem: Problem, copies: int
) -> tuple[float, dict[str, float]]:
    """Return the loop time in s, and its parts, the means over the ranks."""
    job, machine = run.job, run.machine
    slow = max(machine.slowness(node, "compute") for node in job.nodes)
    compute = problem.core_s * copies / job.ranks * slow * machine.noise()
    latency_us = machine.numbers["shared_latency_us"]
    if len(job.nodes) > 1:
        latency_us = machine.numbers["latency_us"] * machine.worst(job.nodes, "latency")
    waiting = 0.05 * compute if job.ranks > 1 else 0.0
    comm = _MESSAGES * STEPS * latency_us / 1e6 * machine.noise() + waiting
    others = {"Bond": problem.bond, "Kspace": problem.kspace}
    parts = {name: share * compute for name, share in others.items() if share}
    parts |= {"Neigh": _SHARES[0][1] * compute, "Comm": comm}
    parts |= {name: share * compute for name, share in _SHARES[1:]}
    other = 0.01 * compute
    pair = compute - other - (sum(parts.values()) - comm)
    return compute + comm, {"Pair": pair, **parts, "Other": other}


PROGRAMS = {"lmp": lmp}
