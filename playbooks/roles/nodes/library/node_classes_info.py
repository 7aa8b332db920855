#!/usr/bin/python
"""Ansible module: nodes of each class, their facts, and Slurm's options for them."""

import json
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: node_classes_info
short_description: Find the nodes of classes, their facts, and Slurm's options
description:
  - Runs on a login node; expands host lists by Slurm, and reads facts through C(srun).
  - Facts are read from all idle nodes of a class; if none is idle, from the first node
    that Slurm gives.
  - Nodes of a class's partition that are not in the class are excluded from its jobs.
  - A class without facts is a problem, unless cores and memory are declared.
  - Changes nothing.
options:
  classes:
    description: The classes, as the variable C(node_classes) of the role gives them.
    type: list
    elements: dict
    required: true
  script:
    description: Shell script that prints the facts of a node in a line.
    type: str
    required: true
  lines:
    description: Lines of this script, read by ssh; srun is not used then.
    type: list
    elements: str
  wait_s:
    description: How long to wait for a node of a class, in seconds.
    type: int
    default: 60
author: The Seatrial authors
"""

EXAMPLES = r"""
- name: Find the nodes
  node_classes_info:
    classes:
      - { name: cpu, nodes: "cn[001-128]", partition: standard, constraint: hdr }
    script: "{{ lookup('file', 'node_facts.sh') }}"
"""

RETURN = r"""
classes:
  description:
    - Name, nodes, options of sbatch (C(access)) and facts of every class.
    - C(racks) are its nodes by rack, or by leaf switch if it has no racks.
  returned: always
  type: list
nodes:
  description: Every node once, with its name and its facts, empty if unknown.
  returned: always
  type: list
problems:
  description: What is missing or wrong, one text each, with what to do.
  returned: always
  type: list
"""

ACCESS_KEYS = ("constraint", "account", "qos", "reservation", "gres", "mem")
"""Keys of a class that are options of sbatch."""

READY = ("idle",)
RESERVED = ("reserved", "maint")
"""States of idle nodes in a reservation, which are ready for its jobs alone."""
BUSY = ("allocated", "mixed", "completing", "planned", *RESERVED)


class ProblemError(Exception):
    """Cause and remedy in one sentence."""


def run(*command, **options):
    """Run a command; return its exit status and both streams."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
    except OSError as error:
        return 127, "", f"{command[0]}: {error.strerror}"
    try:
        output, errors = process.communicate(**options)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, errors = process.communicate()
        return 124, output, f"no end after {options['timeout']} s"
    return process.returncode, output, errors


def last_line(text):
    """Return the last line that is not empty."""
    return ([""] + [line.strip() for line in text.splitlines() if line.strip()])[-1]


def expanded(expression, key="nodes"):
    """Return the nodes of a host list, as Slurm reads it."""
    status, output, errors = run("scontrol", "show", "hostnames", expression)
    if status or not output.split():
        raise ProblemError(
            f"{key}: expected a host list such as cn[001-128], got {expression!r} "
            f"(scontrol: {last_line(errors) or 'no name'})"
        )
    return output.split()


def compressed(nodes):
    """Return nodes as a host list."""
    status, output, _ = run("scontrol", "show", "hostlist", ",".join(nodes))
    return ",".join(nodes) if status else output.strip()


def slurm_nodes():
    """Return the state of each node by partition, hidden partitions included."""
    status, output, errors = run(
        "sinfo", "-a", "-N", "-h", "-o", "%N|%R|%T", timeout=60
    )
    if status:
        raise ProblemError(
            f"sinfo: {last_line(errors)}; run site.yml where Slurm answers"
        )
    states = {}
    for line in output.splitlines():
        name, partition, state = line.split("|", 2)
        states.setdefault(partition, {})[name] = state
    return states


def access(described, names, members):
    """Return the options of sbatch by which jobs get nodes of the class only."""
    options = ["--partition=" + described["partition"]]
    options += [
        f"--{key}={described[key]}"
        for key in ACCESS_KEYS
        if described.get(key) not in (None, "")
    ]
    options += described.get("access") or []
    others = [name for name in members if name not in set(names)]
    return options + (["--exclude=" + compressed(others)] if others else [])


def facts_through_slurm(described, names, states, options, script, wait_s):
    """Read facts of the idle nodes by srun, or of one node if none is idle."""
    ready = READY + RESERVED if described.get("reservation") else READY
    idle = [name for name in names if states.get(name) in ready]
    usable = idle or [name for name in names if states.get(name) in BUSY]
    if not usable:
        raise ProblemError(
            f"no node is up to read facts from ({names[0]} is "
            f"{states.get(names[0], 'unknown to Slurm')}); declare cores and "
            "memory_mib, or resume a node"
        )
    count = str(len(idle) or 1)
    options = [option for option in options if not option.startswith("--gres")]
    command = ["srun", *options]
    command += ["--nodes=" + count, "--ntasks=" + count, "--ntasks-per-node=1"]
    command += ["--nodelist=" + compressed(idle)] if idle else []
    command += ["--job-name=seatrial-facts", "--time=2", "--mpi=none", "--quiet"]
    command += [f"--immediate={wait_s}", "--chdir=/", "sh", "-c", script]
    _, output, errors = run(*command, timeout=wait_s + 180)
    facts = parsed(output.splitlines())
    if not facts:
        raise ProblemError(
            f"no facts through srun ({last_line(errors) or 'no output'}); declare "
            "cores and memory_mib, or let the user run "
            f"`{' '.join(['srun', *options])} hostname`"
        )
    return facts


def parsed(lines):
    """Return facts by node; lines of a site's prologue are skipped."""
    facts = {}
    for line in lines:
        name, _, text = line.partition(" ")
        if text.startswith("{"):
            try:
                facts[name] = json.loads(text)
            except ValueError:
                continue
    return facts


def facts_of_class(described, facts):
    """Return the facts of a class, from those of its nodes or as declared.

    They are those of the node with most CPUs: jobs must not shrink silently where
    another node has lost some.
    """
    if facts:
        largest = max(facts, key=lambda node: node["cpus"])
        memory = described.get("memory_mib") or min(
            node["memory_mib"] for node in facts
        )
        return dict(largest, memory_mib=memory)
    cores, memory = described.get("cores"), described.get("memory_mib")
    if not cores or not memory:
        raise ProblemError(
            "no facts could be read from a node; declare cores and memory_mib"
        )
    return {
        "cpus": cores,
        "sockets": 1,
        "cores_per_socket": cores,
        "threads_per_core": 1,
        "cpu_model": "unknown",
        "memory_mib": memory,
    }


def examine(described, partitions, read):
    """Return a class with nodes, options and facts, and the facts of its nodes."""
    command = described.get("power_command", "x")
    if not command.strip() or "\n" in command.strip():
        raise ProblemError(
            f"power_command: expected a command in one line, got {command!r}"
        )
    names = described["hosts"] or expanded(described["nodes"])
    name = described["partition"]
    if name not in partitions:
        raise ProblemError(
            f"partition: Slurm has no {name!r}; it has "
            f"{', '.join(sorted(partitions)) or 'none'}"
        )
    states = partitions[name]
    if not any(node in states for node in names):
        raise ProblemError(
            f"nodes: none of them is in Slurm's partition {name} "
            f"({compressed(names[:8])}); it has {compressed(sorted(states))}"
        )
    options = access(described, names, states)
    try:
        facts = read(described, names, states, options)
    except ProblemError:
        if not (described.get("cores") and described.get("memory_mib")):
            raise
        facts = {}
    facts = {node: facts[node] for node in names if node in facts}
    of_class = facts_of_class(described, list(facts.values()))
    racks = {}
    for key in ("leaf", "rack"):
        places = described.get(key + "s") or {}
        for place, nodes in places.items():
            for node in expanded(nodes, f"{key}s: {place}"):
                facts.setdefault(node, {})[key] = place
        racks = group(names, facts, key) if places else racks
    node_class = {
        "name": described["name"],
        "nodes": names,
        "access": options,
        "facts": of_class,
        "racks": racks,
    }
    return node_class, facts


def group(names, facts, key):
    """Return the nodes of a class by their rack or leaf."""
    groups = {}
    for name in names:
        place = facts.get(name, {}).get(key)
        if place is not None:
            groups.setdefault(place, []).append(name)
    return groups


def main():
    """Look at every class; problems are returned, for the role to show at once."""
    module = AnsibleModule(
        argument_spec={
            "classes": {"type": "list", "elements": "dict", "required": True},
            "script": {"type": "str", "required": True},
            "lines": {"type": "list", "elements": "str"},
            "wait_s": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    classes, nodes, problems = [], {}, []
    lines = module.params["lines"]

    def read(described, names, states, options):
        if lines is not None:
            return parsed(lines)
        script, wait_s = module.params["script"], module.params["wait_s"]
        return facts_through_slurm(described, names, states, options, script, wait_s)

    try:
        partitions = slurm_nodes()
    except ProblemError as problem:
        module.exit_json(classes=[], nodes=[], problems=[str(problem)])
    for described in module.params["classes"]:
        try:
            node_class, facts = examine(described, partitions, read)
        except ProblemError as problem:
            problems.append(f"node_classes: {described['name']}: {problem}")
            continue
        classes.append(node_class)
        for name in node_class["nodes"]:
            nodes.setdefault(name, {}).update(facts.get(name, {}))
    listed = [{"name": name, "facts": facts} for name, facts in nodes.items()]
    module.exit_json(classes=classes, nodes=listed, problems=problems)


if __name__ == "__main__":
    main()
