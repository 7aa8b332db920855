"""The rounds of a tournament: every two of N nodes meet once, in N - 1 rounds."""

import random
from collections.abc import Iterator


def pairs_of(nodes: int, seed: int) -> Iterator[list[tuple[int, int]]]:
    """Return the pairs of each round, numbers of nodes, the smaller one first.

    The circle method, over an order of the nodes that the seed shuffles.
    """
    order = [*range(nodes)]
    random.Random(seed).shuffle(order)
    places = nodes + nodes % 2
    order += [-1] * (places - nodes)
    last = places - 1
    for number in range(last):
        pairs = []
        for label in range(places):
            other = (number - label) % last if label < last else last
            if label < last and other == label:
                other = last
            first, second = order[label], order[other]
            if label < other and first >= 0 and second >= 0:
                pairs.append((min(first, second), max(first, second)))
        yield pairs
