"""The files of a new check of a site: an application with a metric of its own."""

_TEMPLATE = '''\
"""{name}: an application of this site."""

import re

import reframe as rfm

from seatrial.checks.base import SeatrialCheck, Tag
from seatrial.model.metrics import Metric
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError

_RATE = re.compile(r"^rate: *(\\S+) steps/s$", re.MULTILINE)


@rfm.simple_test
class {name}(SeatrialCheck):
    """How fast does {name} run on all nodes?

    Say here what the input is, and why its size is right for an acceptance.
    """

    descr = "{name} on all nodes"
    tool = "{name}"  # the program, and its version
    experiments = ()
    typical_s = 600  # seconds of a case
    step_s = 1800  # seconds that a run may take at most
    valid_prog_environs = ["*"]  # or some MPI stacks: ["openmpi"]
    reference_file = "{file}.yaml"
    executable = "{file}"  # on PATH, or a full path that all nodes share
    executable_opts = []
    modules = []  # modules that it needs
    ppn = 0  # ranks of a node; 0: one on every core
    tags = {{Tag.APPLICATION}}
    own_metrics = [
        # name, unit, which values are better, meaning
        Metric("{file}_rate", "steps/s", "higher", "time steps", area="programs"),
    ]
    judged = ["{file}_rate"]

    def extract(self, text):
        """Return the rate; refuse output without exactly one."""
        rates = _RATE.findall(text)
        if len(rates) != 1:
            raise ParseError(0, f"expected one line 'rate: N steps/s', got {{rates}}")
        return [Sample("{file}_rate", float(rates[0]))]
'''

_CAMPAIGN = """\
description: {name}, an application of this site
repeats: 8 # fewest that pass a single place under any noise, at a risk of 5 %
retries: 1
blocks:
  - name: application
    checks: [{name}]
"""


def campaign_skeleton(name: str) -> str:
    """Return the text of a campaign of this check alone."""
    return _CAMPAIGN.format(name=name)


def check_skeleton(name: str) -> str:
    """Return the source of a check, of the class `name`, that is complete."""
    return _TEMPLATE.format(name=name, file=name.lower())
