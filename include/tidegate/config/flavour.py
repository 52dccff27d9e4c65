"""What kind of source it is: the key by which sources are told apart.

In:  nothing.
Out: Flavour.
"""

from __future__ import annotations

from enum import StrEnum


class Flavour(StrEnum):
    MYSQL = "mysql"
    MARIADB = "mariadb"
    TIDB = "tidb"
    TICDC = "ticdc"
