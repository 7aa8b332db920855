"""Exit codes, and the one exception that a user sees as text."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit status of every command."""

    PASS = 0
    FAILED = 1
    USAGE = 2
    UNDECIDED = 3
    INTERRUPTED = 130


class SeatrialError(Exception):
    """A mistake or fault that the user can fix: printed without a traceback.

    The text says what failed, what was found, what was expected, and what to do
    next. The command line prints it on stderr and exits with `exit_code`.
    """

    def __init__(self, message: str, exit_code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code
