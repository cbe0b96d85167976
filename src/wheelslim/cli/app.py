"""The ``wheelslim`` command: its subcommands, and errors turned into one message and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated, NoReturn

import typer

from wheelslim.cli.check import check
from wheelslim.cli.console import echo_error, open_closed_streams
from wheelslim.cli.env import env
from wheelslim.cli.explain import explain
from wheelslim.cli.inspect import inspect
from wheelslim.cli.options import with_strip_word
from wheelslim.cli.prune import prune
from wheelslim.cli.stopping import StoppedError, behind, catch_signals, settle
from wheelslim.cli.verify import verify
from wheelslim.cli.wheelhouse import wheelhouse
from wheelslim.errors import ExitCode, WheelslimError
from wheelslim.version import VERSION

_PIPE_CLOSED = 141
"""What a shell reports where the reader of a pipe has gone: 128 and the number of SIGPIPE."""

app = typer.Typer(
    name="wheelslim",
    help="Slim CUDA wheels, conda packages and environments to the GPUs that you run.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wheelslim {VERSION}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Slim CUDA wheels, conda packages and environments to the GPUs that you run."""
    _ = version


app.command("inspect")(inspect)
app.command("check")(check)
app.command("explain")(explain)
app.command("verify")(verify)
app.command("prune")(prune)
app.command("env")(env)
app.command("wheelhouse")(wheelhouse)


def _end(reason: str, code: int) -> NoReturn:
    settle()
    typer.echo(f"wheelslim: {reason}; what was not finished is removed", err=True)
    sys.exit(code)


def main() -> None:
    """Run the command line."""
    # Libraries become up to a million small objects that stay: looking through them for cycles again
    # and again costs a third of the time of planning.
    gc.set_threshold(100_000, 50, 100)
    open_closed_streams()
    catch_signals()
    try:
        app(with_strip_word(sys.argv[1:]))
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer ends at that as if a check had failed.
            sys.exit(_PIPE_CLOSED)
        raise
    except WheelslimError as error:
        echo_error(error)
        sys.exit(error.exit_code)
    except StoppedError as error:
        _end("stopped", error.exit_code)
    except MemoryError:
        _end("out of memory", ExitCode.IO)
    except OSError as error:
        echo_error(error)
        sys.exit(ExitCode.IO)
    except Exception as error:
        stopped = behind(error)
        if stopped is not None:
            _end("stopped", stopped.exit_code)
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            _end("no memory for threads", ExitCode.IO)
        if os.environ.get("WHEELSLIM_DEBUG"):
            raise
        name = type(error).__name__
        typer.echo(f"wheelslim: internal error, please report it: {name}: {error}", err=True)
        typer.echo("wheelslim: nothing half-written is left; WHEELSLIM_DEBUG=1 shows where it was", err=True)
        sys.exit(ExitCode.UNSUPPORTED)
