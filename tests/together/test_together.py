"""Everybody at once, for some minutes: `make together` for as long as one likes, and on S3."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.seeds import LONG, many, seed
from tests.support.servers import ROOT


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="it looks for what meets by chance: make test-long")
def test_silver_is_equal_while_everybody_writes_to_the_lake() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.together", "--minutes", str(many(1, 10)), "--every", "1", "--seed", str(seed())],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=many(900, 2400),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"together: [1-9]\d* comparisons, 0 wrong", done.stdout.splitlines()[-1])
