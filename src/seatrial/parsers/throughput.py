"""Output of `seatrial.checks.throughput`: one row with the times of short jobs."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import Decoder, decode_object, require


@dataclass(frozen=True)
class ThroughputRow:
    """Seconds until `jobs` were submitted, until they had ended, and array tasks had.

    `requests` were sent to the controller in `seconds`.
    """

    program: Literal["throughput"]
    jobs: int
    tasks: int
    submit_s: float
    jobs_s: float
    array_s: float
    requests: int
    seconds: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(self.jobs > 0 and self.tasks > 0, "no jobs, or no tasks of an array")
        require(0 < self.submit_s <= self.jobs_s, f"submit_s {self.submit_s}")
        require(self.array_s > 0, "array_s is not positive")
        least = self.jobs_s + self.array_s
        require(self.seconds >= least, f"seconds {self.seconds}, at least {least}")
        require(self.requests > self.jobs, f"requests {self.requests}")


def parse_throughput(text: str) -> ThroughputRow:
    """Read the only row; ParseError if there is another number of them."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.startswith("{")
    ]
    if len(lines) != 1:
        raise ParseError(0, f"{len(lines)} rows of throughput, expected 1")
    number, line = lines[0]
    return Decoder(ThroughputRow)(number, decode_object(number, line))
