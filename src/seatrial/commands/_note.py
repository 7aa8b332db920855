"""The option --note, which is the same for every command that writes pages."""

import click

note_option = click.option(
    "--note",
    "notes",
    multiple=True,
    metavar="TEXT",
    help="Say this at the top of what is written; may be repeated.",
)
