"""Which server ran a statement: its family, its version, how it takes names.

In:  the text of @@version or of FORMAT_DESCRIPTION.
Out: a ServerVersion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tidegate.table_names import folded

# As MySQL 8.0 reads a statement, which TiDB follows; the name keeps it apart in messages.
TIDB: Final = "8.0.11-TiDB"


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The server, on which a statement's meaning depends. number: 90704 for 9.7.4, 110405 for 11.4.5.

    folds_names: it takes names of databases and tables in lower case, whatever is typed. A TiDB always does.
    tidb: it is a TiDB, which passes for the MySQL that it follows.
    """

    mariadb: bool
    number: int
    folds_names: bool = False
    tidb: bool = False

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, version: str) -> ServerVersion:
        """From the text of @@version or of FORMAT_DESCRIPTION, e.g. "11.4.5-MariaDB-log", "9.7.4"."""
        mariadb = "mariadb" in version.lower()
        text = version.removeprefix("5.5.5-") if mariadb else version  # a prefix that old MariaDB put before its own
        match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
        if match is None:
            return cls(mariadb, 110400 if mariadb else 90000)
        number = int(match[1]) * 10000 + int(match[2]) * 100 + int(match[3] or 0)
        tidb = "tidb" in version.lower()
        return cls(mariadb, number, folds_names=tidb, tidb=tidb)

    def folded(self, name: str) -> str:
        """The name of a database or a table as this server keeps it."""
        return folded(name) if self.folds_names else name
