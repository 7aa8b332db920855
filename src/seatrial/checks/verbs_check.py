# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of all checks below MPI."""

from reframe.core.builtins import run_after
from reframe.core.exceptions import ReframeError

from seatrial.checks.base import Tag
from seatrial.checks.job_steps import SteppedCheck

MPI_OVER_TCP = {
    "UCX_TLS": "tcp,sm,self",
    "UCX_NET_DEVICES": "all",
    # Open MPI takes UCX without InfiniBand only if it is told so.
    "OMPI_MCA_opal_common_ucx_tls": "any",
    "OMPI_MCA_opal_common_ucx_devices": "any",
}
"""Variables that keep the messages of MPI off the adapter, where it takes UCX."""


class VerbsCheck(SteppedCheck):
    """A check of the rails that the inventory names for a class of nodes."""

    valid_systems = ["+verbs"]
    reference_file = "verbs.yaml"
    tags = {Tag.NETWORK}
    step_s = 300

    @run_after("setup")
    def take_rails(self) -> None:
        """Read rails and GID indexes; skip a class that has no rails."""
        extras = self.current_partition.extras
        self.rails = extras.get("rails", [])
        self.gid_indexes = extras.get("gid_indexes", {})
        node_class = self.current_partition.name
        self.skip_if(
            not self.rails,
            f"node_classes names no rails of the class {node_class}: name device and "
            "port of each adapter, such as mlx5_0:1",
        )
        if unknown := self.gid_indexes.keys() - set(self.rails):
            raise ReframeError(
                f"gid_indexes of the class {node_class}: {', '.join(sorted(unknown))}: "
                f"expected one of its rails {', '.join(self.rails)}"
            )
