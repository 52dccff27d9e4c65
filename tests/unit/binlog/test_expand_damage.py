"""Damage inside compressed events: with checksums a typed error or the right rows; without, never a crash or a hang."""

from __future__ import annotations

import dataclasses
import zlib
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.decoding import DECODERS, changed_rows
from tests.support.seeds import many as random_examples
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.test_expand import ORDERS, VERSIONS, WINDOWS, made, many, row, transaction, write
from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.unpack import COMPRESSED_TYPES
from tidegate.binlog.rows.decode import decode_segment
from tidegate.errors import StreamCorrupt, Terminal, UnknownEvent

LARGE = e.payload(*transaction(*write(*(row(n, f"name {n}") for n in range(200))), *write(row(1), name=ORDERS)))
LOG = [*many()[:21], e.mysql_gtid(99, 10**15), LARGE, *many()[:7]]
COMPRESSED = [number for number, one in enumerate(LOG) if one[4] in COMPRESSED_TYPES.tolist()]
SEGMENT = made(*LOG)


@cache
def right() -> list[dict[str, Any]]:
    return changed_rows(decode_segment(SEGMENT, VERSIONS, WINDOWS))


# (which compressed event, changes of (share of its body, byte), bytes cut from its end)
DAMAGE = st.tuples(
    st.sampled_from(COMPRESSED),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(1, 255)), max_size=3),
    st.integers(0, 40),
).filter(lambda found: bool(found[1]) or found[2] > 0)
# Errors with the place in the file: (type, whether it says where).
TOLD = [(StreamCorrupt, True), (UnknownEvent, True)]
QUICK = settings(
    deadline=None, max_examples=random_examples(150, 5000), suppress_health_check=[HealthCheck.too_slow], database=None
)


def damaged(which: int, flips: list[tuple[float, int]], cut: int, *, sealed: bool) -> bytes:
    """An event with other bytes behind its header; sealed: with the size and checksum that fit them."""
    body = bytearray(LOG[which][19:-4])
    for share, bits in flips:
        body[int(share * len(body))] ^= bits
    if sealed:
        body = body[: max(len(body) - cut, 0)]
        whole = LOG[which][:9] + (19 + len(body) + 4).to_bytes(4, "little") + LOG[which][13:19] + bytes(body)
        return whole + zlib.crc32(whole).to_bytes(4, "little")
    return LOG[which][:19] + bytes(body) + LOG[which][-4:]


def outcome(decode: Any, payload: bytes, **keywords: Any) -> Any:
    try:
        found = decode(dataclasses.replace(SEGMENT, payload=payload), VERSIONS, WINDOWS, **keywords)
    except Terminal as error:
        return type(error), "binlog.000042:" in str(error)
    # Not which error it is: of two, the kernel finds the one in the bytes' lengths first, the slow twin that of the
    # earlier row.
    return [p.table for p in found.problems], changed_rows(found)


def log_with(which: int, event: bytes) -> bytes:
    return b"".join([*LOG[:which], event, *LOG[which + 1 :]])


@QUICK
@given(DAMAGE.filter(lambda found: bool(found[1])))
def test_a_flipped_byte_is_an_error_or_changes_nothing(found: Any) -> None:
    which, flips, cut = found
    payload = log_with(which, damaged(which, flips, cut, sealed=False))
    said = outcome(decode_segment, payload, verify_checksums=True)
    assert said in (([], right()), *TOLD)


@QUICK
@given(DAMAGE)
def test_damage_with_a_checksum_that_fits_it_gives_both_decoders_the_same(found: Any) -> None:
    which, flips, cut = found
    payload = log_with(which, damaged(which, flips, cut, sealed=True))
    one, other = (outcome(decode, payload) for decode in DECODERS)
    assert one == other
    assert isinstance(one[0], list) or one in TOLD


def test_the_log_under_damage_holds_every_kind_of_compressed_event() -> None:
    kinds = {LOG[number][4] for number in COMPRESSED}
    assert kinds == {EventType.TRANSACTION_PAYLOAD, EventType.MARIADB_QUERY_COMPRESSED, 166, 169}
    assert len(right()) > 200
