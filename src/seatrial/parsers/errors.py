"""The one error of all parsers."""


class ParseError(ValueError):
    """Output that is not what the program promises.

    `line` counts from 1 (0: the whole text, for example when it is empty);
    `reason` says what was found and what was expected.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.line = line
        self.reason = reason
