"""`tidegate` through the entry of the console script, in this process: an interpreter of its own costs a CPU second.

In:  arguments, and variables beside the environment's.
Out: tidegate(): what the command printed, and its exit code. That the script itself starts is seen in tests/demo.
"""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from tidegate.cli import main


def tidegate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As subprocess.run would tell of it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(err):
        try:
            main.run(list(arguments))
        except SystemExit as ended:
            code = ended.code
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, code if isinstance(code, int) else 0, *said)
