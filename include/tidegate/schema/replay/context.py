"""The context of a statement: its effect depends on it besides its text and the tables that it finds.

In:  the session's and the event's facts, the database's defaults.
Out: a Context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.schema.ddl.statement import EventSaid
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.server_settings import ServerSettings

# Before these versions explicit_defaults_for_timestamp was off by default.
_EXPLICIT_SINCE = {True: 101000, False: 80002}


@dataclass(frozen=True, slots=True)
class Context:
    """table: the one that the statement is about. defaults: (charset, collation) of its database."""

    server: ServerVersion
    defaults: tuple[str, str]
    new_id: Callable[[], int]
    said: EventSaid
    settings: ServerSettings
    table: tuple[str, str]

    @property
    def implicit_timestamps(self) -> bool:
        """Whether a TIMESTAMP without NULL is NOT NULL, and a table's first one is filled with the time."""
        usual = self.server.number < _EXPLICIT_SINCE[self.server.mariadb]
        if self.said.explicit_timestamps is not None:
            return not self.said.explicit_timestamps
        if self.server.mariadb and self.said.mariadb_explicit is not None:
            # Older versions don't write the bit: they leave it off whatever the session has.
            return not self.said.mariadb_explicit if self.said.mariadb_explicit or not usual else usual
        return usual

    @property
    def logs_cascades(self) -> bool:
        """Whether what foreign keys' actions change comes as row events."""
        return self.settings.logs_cascades(self.server)
