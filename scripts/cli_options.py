"""Write the list of all options into docs/cli.md, from the commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wheelslim.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click import Command, Parameter

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
BEGIN = "<!-- begin: made by scripts/cli_options.py -->\n"
END = "<!-- end: made by scripts/cli_options.py -->\n"


def option_list() -> str:
    """Return a table for each command: its arguments and options, what they do, and their defaults."""
    group = typer.main.get_command(app)
    context = typer.Context(group)
    parts = []
    for name in group.list_commands(context):  # type: ignore[attr-defined]
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        parts.append(
            "\n".join((f"### wheelslim {name}\n", "| option | does |", "|---|---|", *_rows(command))) + "\n"
        )
    return "\n".join(parts)


def _rows(command: Command) -> Iterator[str]:
    for parameter in command.params:
        if parameter.name != "help":
            does = getattr(parameter, "help", None) or ""
            yield f"| {_names(parameter)} | {' '.join((does, *_default(parameter)))} |".replace("*'", "\\*'")


def _names(parameter: Parameter) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or (parameter.name or '').upper()}`" + (
            " …" if parameter.nargs == -1 else ""
        )
    names = [*parameter.opts, *parameter.secondary_opts]
    choices = getattr(parameter.type, "choices", None)
    words = "" if choices is None else " " + ", ".join(f"`{getattr(one, 'value', one)}`" for one in choices)
    return ", ".join(f"`{name}`" for name in names) + words


def _default(parameter: Parameter) -> Iterator[str]:
    if parameter.required:
        yield "Required."
        return
    default = parameter.default() if callable(parameter.default) else parameter.default
    default = getattr(default, "value", default)
    if isinstance(default, str | Path) and str(default):
        yield f"Default: `{default}`."
    elif default is True:
        yield f"Default: `{parameter.opts[0]}`."


def page_with(options: str) -> str:
    """Return docs/cli.md with ``options`` between its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{options}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with(option_list()), encoding="utf-8")
