"""`tidegate demo`: see tidegate.demo.run.

In:  how long the shop is open.
Out: the display and the proof; exit code 1 when silver differs from the source.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from tidegate.home import EXIT_ERROR, home


def demo(
    seconds: Annotated[float, typer.Option(help="Seconds that the shop is open", min=5)] = 45.0,
    transactions: Annotated[int | None, typer.Option(help="Close earlier, after this many transactions", min=1)] = None,
    rate: Annotated[float, typer.Option(help="Transactions per second", min=1)] = 80.0,
    seed: Annotated[int, typer.Option(help="Seed of the shop's random numbers")] = 7,
    stay: Annotated[
        bool | None, typer.Option("--stay/--no-stay", help="Keep Airflow up at the end. Default on a terminal")
    ] = None,
) -> None:
    """Run a MariaDB shop; Airflow and Spark keep it equal in Delta."""
    from rich.console import Console

    from tidegate.demo.run import Demo, DemoOptions

    # A `kill` must end the servers as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_ERROR))
    console = Console(width=None if sys.stdout.isatty() else 160)
    options = DemoOptions(seconds=seconds, transactions=transactions, seed=seed, rate=rate)
    equal = Demo(home(), options, console).run(stay=sys.stdout.isatty() if stay is None else stay)
    if not equal:
        raise typer.Exit(EXIT_ERROR)
