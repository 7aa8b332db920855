"""The command line: every module of seatrial.commands is one command.

A module `commands/NAME.py` defines a click command `NAME`; it is imported when used.
Where NAME is a word of Python, both end in an underscore: `import_`.
"""

import errno
import importlib
import keyword
import pkgutil
from typing import Any

import click

import seatrial
from seatrial import commands
from seatrial.errors import Exit, SeatrialError
from seatrial.paths import restrict_umask


class Commands(click.Group):
    """Finds commands by module name, and shows an error as text on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands."""
        found = pkgutil.iter_modules(commands.__path__)
        return sorted(
            module.name.rstrip("_").replace("_", "-")
            for module in found
            if not module.name.startswith("_")
        )

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one command; None if there is none of that name."""
        if name not in self.list_commands(ctx):
            return None
        attribute = name.replace("-", "_") + "_" * keyword.iskeyword(name)
        module = importlib.import_module(f"{commands.__name__}.{attribute}")
        command: click.Command = getattr(module, attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; no user's mistake ends in a traceback."""
        restrict_umask()
        try:
            return super().invoke(ctx)
        except SeatrialError as error:
            click.echo(f"seatrial: {error}", err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
                raise
            where = f": {error.filename}" if error.filename else ""
            click.echo(f"seatrial: {error.strerror}{where}", err=True)
            ctx.exit(Exit.USAGE)
        except KeyboardInterrupt:
            click.echo("seatrial: interrupted", err=True)
            ctx.exit(Exit.INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(seatrial.__version__)
def main() -> None:
    """Test an HPC cluster: run a campaign, judge it, report it.

    Exit status: 0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided.

    Example: seatrial run lab --campaign smoke && seatrial report latest
    """
