"""What a fuzzer does with one file: decode it in every way, and look at how that ends.

In:  bytes of a binlog file, damaged or not; table versions that may fit it.
Out: nothing, when every decoder ended with rows, with problems, or with a TidegateError, and kernel and slow twin with
     the same ones. Anything else is raised. A read or write outside the bytes ends the process (guarded.py).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.fuzz.guarded import allocate_fenced, fenced
from tests.kit.decoding import ALL_TIME, segment
from tests.reference.decode import decode_segment_reference
from tests.support.log_decode import decoded as decoded_file
from tidegate.binlog.rows.decode import decode_segment
from tidegate.errors import TidegateError
from tidegate.schema.model.columns import TableVersion

Versions = Mapping[tuple[str, str], Sequence[TableVersion]]


class DisagreeError(AssertionError):
    """Kernel and twin gave different answers."""


def fence_buffers() -> None:
    """From here on every Arrow buffer that is allocated for a decoder ends before a fence."""
    pa.allocate_buffer = allocate_fenced


def _outcome(decode: Any, content: bytes, versions: Versions) -> tuple[Any, ...]:
    first = int.from_bytes(content[13:17], "little")
    made = segment(fenced(content[4 : 4 + first]), fenced(content[4:]))
    try:
        found = decode(made, versions, dict.fromkeys(versions, ALL_TIME))
    except TidegateError as error:
        return (type(error).__name__,)
    for change in found.changes:
        change.batch.validate(full=True)
    found.ledger.check()
    rows = [(c.database, c.table, c.version, c.batch.schema.names, c.batch.to_pylist()) for c in found.changes]
    # The kernel looks at the lengths of all rows before it looks at text, the twin goes row by row.
    alike = {"DecodeError": "bytes", "UnsupportedValue": "bytes"}
    problems = [(p.database, p.table, alike.get(p.error, p.error)) for p in found.problems]
    return (repr(rows), problems, found.ledger)


def decode_everything(content: bytes, versions: Versions) -> None:
    kernel, twin = (_outcome(decode, content, versions) for decode in (decode_segment, decode_segment_reference))
    if kernel != twin:
        raise DisagreeError(_first_difference(kernel, twin))
    with tempfile.NamedTemporaryFile(prefix="fuzz-") as file:
        file.write(content)
        file.flush()
        try:
            found = decoded_file([Path(file.name)])
        except TidegateError:
            return
        for stats in found.stats:
            json.dumps(stats)


def _first_difference(kernel: tuple[Any, ...], twin: tuple[Any, ...]) -> str:
    for one, other in zip(kernel, twin, strict=False):
        if one == other:
            continue
        ours, theirs = str(one), str(other)
        at = len(os.path.commonprefix([ours, theirs]))  # noqa: RUF071 - no paths
        return f"kernel ...{ours[max(at - 150, 0) : at + 100]}... twin ...{theirs[max(at - 60, 0) : at + 100]}..."
    return f"kernel {kernel}, twin {twin}"[:600]
