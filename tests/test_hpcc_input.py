"""hpccinf.txt: sizes from memory and ranks."""

import pytest

from seatrial.checks.hpcc_input import hpcc_input, order_for_memory, process_grid


@pytest.mark.parametrize(
    ("ranks", "grid"),
    [
        *((1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (6, (2, 3)), (7, (1, 7))),
        *((12, (3, 4)), (64, (8, 8)), (96, (8, 12)), (128, (8, 16))),
    ],
)
def test_grid_is_as_square_as_it_goes(ranks: int, grid: tuple[int, int]) -> None:
    assert process_grid(ranks) == grid


@pytest.mark.parametrize("gib", [0.01, 1, 25.6, 205, 3000])
@pytest.mark.parametrize("block", [80, 192, 232])
def test_matrix_fills_the_memory_and_no_more(gib: float, block: int) -> None:
    memory = gib * 2**30
    n = order_for_memory(memory, block)
    assert n % block == 0
    assert 8 * n**2 <= memory < 8 * (n * 65 / 64 + block) ** 2


def test_memory_without_room_for_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="1000 bytes do not hold a block of 192"):
        order_for_memory(1000, 192)


def test_input_has_its_lines_where_hpcc_looks_for_them() -> None:
    lines = hpcc_input(1000, 192, 6).splitlines()
    assert len(lines) == 36
    assert [lines[i].split()[0] for i in (4, 5, 6, 7, 9, 10, 11)] == [
        *("1", "1000", "1", "192", "1", "2", "3")
    ]
    assert "separator" in lines[31]
