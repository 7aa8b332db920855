"""The five benchmarks of LAMMPS: their logs, but for the times.

Energies are those of the logs that LAMMPS ships beside its inputs, 15 July 2025.
`{0}` of a table is the sum over all copies of the system; per atom, it has none.
"""

STEPS = 100
ATOMS = 32_000


class Problem:
    """A benchmark: its seconds on one core, and what its log shows."""

    def __init__(
        self,
        core_s: float,
        thermo: str,
        builds: int,
        danger: str = "= 0",
        bond: float = 0.0,
        kspace: float = 0.0,
    ) -> None:
        self.core_s, self.thermo, self.builds = core_s, thermo, builds
        self.danger, self.bond, self.kspace = danger, bond, kspace

    def table(self, copies: int) -> list[str]:
        """Return the thermodynamic output of that many copies of the system."""
        lines = []
        for line in self.thermo.splitlines():
            words = line.split(" ")
            for at, word in enumerate(words):
                if word.startswith("@"):
                    number, _, decimals = word[1:].partition("/")
                    words[at] = f"{copies * float(number):.{decimals or 0}f}"
            lines.append(" ".join(words))
        return lines


def _multi(rows: tuple[tuple[int, float, float], ...]) -> str:
    """Return the style multi: total, kinetic and potential energy of each step."""
    lines = []
    for step, total, kinetic in rows:
        title = f"------------ Step {step:>14} ----- CPU =            0 (sec) "
        lines.append(f"{title}-------------")
        lines.append(
            f"TotEng   = @{total}/4 KinEng   = @{kinetic}/4 Temp     = 299.0397 "
        )
        lines.append(f"PotEng   = @{total - kinetic:.4f}/4 Press    = -149.3300 ")
    return "\n".join(lines)


PROBLEMS = {
    "rhodo": Problem(
        24.0,
        _multi(
            (
                (0, -25356.2057, 21444.8313),
                (50, -25330.0307, 21501.0009),
                (100, -25290.7364, 21591.9089),
            )
        ),
        builds=11,
        bond=0.025,
        kspace=0.07,
    ),
    "lj": Problem(
        2.4,
        "   Step          Temp          E_pair         E_mol          TotEng     \n"
        "         0   1.44          -6.7733681      0             -4.6134356     \n"
        "       100   0.7574531     -5.7585055      0             -4.6223613     ",
        builds=5,
        danger="not checked",
    ),
    "eam": Problem(
        6.0,
        "   Step          Temp          E_mol          TotEng     \n"
        "         0   1600           0             @-106662.09/2     \n"
        "        50   781.69049      0             @-106640.13/2     \n"
        "       100   801.832        0             @-106640.77/2     ",
        builds=13,
    ),
    "chain": Problem(
        1.2,
        "   Step          Temp          E_pair         E_mol          TotEng     \n"
        "         0   0.97029772     0.44484087     20.494523      22.394765     \n"
        "       100   0.97145835     0.43803883     20.502691      22.397872     ",
        builds=25,
        bond=0.02,
    ),
    "chute": Problem(
        0.6,
        "   Step        Atoms        KinEng          c_1           Volume    \n"
        "         0       @32000   @784139.13/2      1601.1263      29833.783    \n"
        "       100       @32000   @784292.08/2      1571.0968      29834.707    ",
        builds=2,
    ),
}
