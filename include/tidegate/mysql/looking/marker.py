"""Write markers at a source: rows with the time of their writing.

In:  a connection whose account may create and write tables.MARKER.
Out: rows of the table, in a ring, to keep it and its silver table small.
"""

from __future__ import annotations

import time
from typing import Any, Final

from tidegate.limits import CLOCK_ATTEMPTS_MAX
from tidegate.tables import MARKER_DATABASE, MARKER_TABLE

# A slot is written again after this many markers; a window that holds more of them measures only the later.
SLOTS: Final = 4096
_PLACE: Final = f"`{MARKER_DATABASE}`.`{MARKER_TABLE}`"
# The source's clock while the statement runs, microseconds since the Unix epoch; SYSDATE ignores SET TIMESTAMP.
_CLOCK: Final = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"


class MarkerWriter:
    """Writes markers over one autocommitting connection of PyMySQL. For one thread at a time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._slot = 0
        self.ahead_us = 0

    def create(self) -> None:
        """Make the table, and compare the clocks. Raises what PyMySQL raises."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{MARKER_DATABASE}`")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {_PLACE}"
                " (slot INT PRIMARY KEY, written_us BIGINT NOT NULL, ahead_us BIGINT NOT NULL)"
            )
        self.ahead_us = self.compare_clocks()

    def compare_clocks(self) -> int:
        """Microseconds of the source's clock ahead of this machine's, by the quickest of some
        questions.
        """
        answers = []
        with self._connection.cursor() as cursor:
            for _ in range(CLOCK_ATTEMPTS_MAX):
                asked = time.time()
                cursor.execute(f"SELECT {_CLOCK}")
                theirs = int(cursor.fetchone()[0])
                heard = time.time()
                answers.append((heard - asked, theirs - int((asked + heard) / 2 * 1e6)))
        return min(answers)[1]

    def write(self) -> None:
        """One marker, committed at once."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {_PLACE} VALUES (%s, {_CLOCK}, %s)"
                " ON DUPLICATE KEY UPDATE written_us = VALUES(written_us), ahead_us = VALUES(ahead_us)",
                (self._slot, self.ahead_us),
            )
        self._slot = (self._slot + 1) % SLOTS
