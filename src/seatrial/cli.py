"""The command line: every module of seatrial.commands is one command.

A module `commands/NAME.py` defines a click command `NAME`; it is imported when used.
Where NAME is a word of Python, both end in an underscore: `import_`.
"""

import importlib
import keyword
import pkgutil
import traceback
from typing import Any

import click

import seatrial
from seatrial import commands
from seatrial.commands._packs import with_pack_names
from seatrial.errors import Exit, SeatrialError
from seatrial.output import DEBUG, clean, complain, echo, guard_streams, is_debugging
from seatrial.paths import restrict_umask

_MOST_LETTERS = 300


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

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line on streams that survive a closed pipe."""
        guard_streams()
        return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; every error is one text on stderr, and never status 1."""
        restrict_umask()
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = clean(error.message)
            raise
        except (click.exceptions.Exit, click.Abort, SystemExit, GeneratorExit):
            raise
        except SeatrialError as error:
            _complain(error, str(error))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt as error:
            _complain(error, "interrupted")
            ctx.exit(Exit.INTERRUPTED)
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            _complain(error, f"{error.strerror or error}{where}")
            ctx.exit(Exit.USAGE)
        except BaseException as error:  # Polars panics are no Exception
            first = next(iter(str(error).splitlines()), "")
            _complain(
                error,
                f"unexpected {type(error).__name__}: {first[:_MOST_LETTERS]}. An input "
                "is damaged, or this is a defect of Seatrial; nothing was decided. "
                f"Set {DEBUG}=1 to see the traceback",
            )
            ctx.exit(Exit.USAGE)


def _complain(error: BaseException, text: str) -> None:
    if is_debugging():
        echo(*"".join(traceback.format_exception(error)).splitlines(), err=True)
    complain(with_pack_names(text))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(seatrial.__version__)
def main() -> None:
    """Test an HPC cluster: run a campaign, judge it, report it.

    Exit status: 0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided.
    With SEATRIAL_DEBUG=1 an error shows its traceback.

    Example: seatrial run lab --campaign smoke && seatrial report latest
    """
