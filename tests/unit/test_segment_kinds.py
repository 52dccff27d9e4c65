"""A segment's bytes are read by what knows its kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.segments import segment
from tidegate.errors import UnknownEvent
from tidegate.segment_kinds import APART, DECODERS, FEEDS, changes_of, statements_of
from tidegate.segments.result import NOTHING_KNOWN
from tidegate.tables import SegmentKind


def test_what_decodes_a_kind_also_reads_its_statements() -> None:
    assert set(DECODERS) == set(FEEDS) | APART


def test_a_kind_that_this_version_cannot_read_is_named() -> None:
    unread = replace(segment(1), kind=SegmentKind.PREPARED)
    with pytest.raises(UnknownEvent, match="kind prepared"):
        list(changes_of(unread, {}, {}, NOTHING_KNOWN))
    with pytest.raises(UnknownEvent, match="kind prepared"):
        statements_of(unread)
