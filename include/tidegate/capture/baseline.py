"""The schema of a source at the position where capture starts, without a lock.

In:  a connection, the position the stream starts at, which tables the pipeline keeps.
Out: one TableVersion per kept table (kind "baseline"), and rows of defaults per database and for the server; written
     to control/schema_history once per source.

Why it is the schema at that position: it is read after the position, and then the binlog from the position on is
looked at: when no DDL about a kept table stands there, nothing changed in between. When one does, the start is tried
again. A table that holds a row is needs_snapshot: what came before the stream is not in the log. A row that came after
the position counts too; waiting for a snapshot is right then as well, only not necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import batched  # type: ignore[attr-defined]
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate import tables
from tidegate.config import Pipeline, Start
from tidegate.errors import DDLError, SourceUnavailable
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import BASELINE_ATTEMPTS_MAX
from tidegate.position import Position
from tidegate.schema.columns import Column, Generated, Index, IndexKind, TableVersion, VersionStatus
from tidegate.schema.ddl_reader import tables_named
from tidegate.schema.history import BASELINE, DEFAULTS
from tidegate.schema.table_shape import key_of
from tidegate.wire.connection import ConnectionInfo, connect, named
from tidegate.wire.source import SourceFacts, current_position
from tidegate.wire.sql import quote_name
