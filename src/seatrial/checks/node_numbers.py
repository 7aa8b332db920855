"""Numbers of nodes, or of pairs, on which a check runs its program."""


def doubled(most: int) -> list[int]:
    """Return the powers of two below `most`, and `most` itself."""
    return [*(1 << power for power in range((most - 1).bit_length())), most]


def spread(most: int, numbers: int) -> list[int]:
    """Return up to so many numbers from 1 to `most`, of at least two.

    They are as `doubled`, or, where these are too many, every second or third of them.
    """
    powers = doubled(most)[:-1]
    step = max(1, -(-len(powers) // (numbers - 1)))
    return [*powers[::step], most]
