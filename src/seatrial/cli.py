"""The command line: every module of seatrial.commands is one command.

A module `commands/NAME.py` defines a click command `NAME`; it is imported when used.
If NAME is a keyword of Python, both end in an underscore: `import_`.
"""

import ast
import importlib
import importlib.util
import keyword
import pkgutil
import traceback
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import seatrial
from seatrial import commands
from seatrial.commands._runs import with_pack_names
from seatrial.errors import Exit, SeatrialError
from seatrial.memory import return_large_arrays
from seatrial.output import DEBUG, clean, complain, echo, guard_streams, is_debugging
from seatrial.paths import restrict_umask

_MOST_LETTERS = 300


class Commands(click.Group):
    """A group that finds commands by module name and prints errors on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        modules = pkgutil.iter_modules(commands.__path__)
        return sorted(
            module.name.rstrip("_").replace("_", "-")
            for module in modules
            if not module.name.startswith("_")
        )

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List all commands without importing them."""
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        rows = [(name, _stub(name).get_short_help_str(width)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Complete an option, or the name of a command without importing any."""
        return [
            CompletionItem(name, help=_stub(name).get_short_help_str())
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command; None if the name is unknown."""
        if name not in self.list_commands(ctx):
            return None
        attribute = _attribute(name)
        module = importlib.import_module(f"{commands.__name__}.{attribute}")
        command: click.Command = getattr(module, attribute)
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line on streams that survive a closed pipe."""
        guard_streams()
        return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print an error on stderr, and never end with status 1."""
        restrict_umask()
        return_large_arrays()
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


def _attribute(name: str) -> str:
    """Return the name of a command's module and function."""
    return name.replace("-", "_") + "_" * keyword.iskeyword(name)


def _stub(name: str) -> click.Command:
    """Return a command with the help text of its source, without importing it."""
    attribute = _attribute(name)
    spec = importlib.util.find_spec(f"{commands.__name__}.{attribute}")
    assert spec is not None and spec.origin is not None
    for node in ast.parse(Path(spec.origin).read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            return click.Command(name, help=ast.get_docstring(node))
    raise AssertionError(f"{spec.origin}: no function {attribute}")


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
