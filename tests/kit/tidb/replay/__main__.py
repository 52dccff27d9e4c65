"""`python -m tests.kit.tidb.replay DIR...`: command.py.

In:  its arguments.
Out: JSON on stdout, an exit code.
"""

from __future__ import annotations

import typer

from tests.kit.tidb.replay.command import tidb_replay

if __name__ == "__main__":
    typer.run(tidb_replay)
