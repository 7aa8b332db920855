"""Output of a job of several steps, each between a line of ours before and after it.

`# step NAME`, then what the program printed, then `# done NAME START END` with both
times in seconds since the epoch. The second line is written only after exit status 0.

What stands outside of the steps (a greeting, Slurm's prologue and epilogue, a warning
of the job script) is passed over: no number is lost there, as every step must have its
lines before and after it. Foreign lines inside a step are up to its parser (`printed`).
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError

_BEGIN = re.compile(r"# step (\S+)\n")
_END = re.compile(r"# done (\S+) (\d+\.\d+) (\d+\.\d+)\n")


@dataclass(frozen=True)
class StepOutput:
    """The output of a step, after line `line` of the job, and its seconds in srun.

    `start` is in seconds since the epoch, by the clock of the first node.
    """

    name: str
    line: int
    text: str
    seconds: float
    start: float

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the step and the line of the job to a ParseError of this text."""
        try:
            yield
        except ParseError as error:
            line = self.line + error.line
            raise ParseError(line, f"{self.name}: {error.reason}") from None


def split_steps(text: str, names: Sequence[str]) -> tuple[StepOutput, ...]:
    """Split the output of a job into its steps.

    Raises ParseError if the steps are not exactly `names` in this order, or if one has
    no end.
    """
    outputs: list[StepOutput] = []
    inside = ""
    begin = 0
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        if match := _BEGIN.fullmatch(line):
            expected = names[len(outputs)] if len(outputs) < len(names) else "no step"
            if inside or match[1] != expected:
                wanted = f"the end of {inside}" if inside else expected
                raise ParseError(number, f"step {match[1]}, expected {wanted}")
            inside, begin = match[1], number
        elif match := _END.fullmatch(line):
            if match[1] != inside:
                reason = f"the end of {match[1]}, expected {inside or 'a step'}"
                raise ParseError(number, reason)
            seconds = float(match[3]) - float(match[2])
            if not (math.isfinite(seconds) and seconds > 0):
                raise ParseError(number, f"{match[1]} took {seconds} s")
            output = "".join(lines[begin : number - 1])
            outputs.append(StepOutput(inside, begin, output, seconds, float(match[2])))
            inside = ""
    if inside or len(outputs) < len(names):
        missing = inside or names[len(outputs)]
        reason = f"{len(outputs)} of {len(names)} steps came to an end; not {missing}"
        raise ParseError(len(lines), reason)
    return tuple(outputs)
