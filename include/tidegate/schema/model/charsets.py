"""Character sets: default collation, bytes per character, names as a server shows them.

In:  names as a statement writes them (`utf8`, `utf8_bin`, `uca1400_ai_ci`).
Out: names as that server's information_schema shows them. Facts: `SHOW CHARACTER SET` of MySQL 9.7, MariaDB 11.4.
"""

from __future__ import annotations

from typing import Final

from tidegate.errors import DDLError
from tidegate.remedy import REPORT
from tidegate.schema.model.server import ServerVersion

_DEFAULTS: Final = {
    "big5": "chinese", "cp932": "japanese", "dec8": "swedish", "eucjpms": "japanese", "euckr": "korean",
    "gb18030": "chinese", "gb2312": "chinese", "gbk": "chinese", "hp8": "english", "latin1": "swedish",
    "latin5": "turkish", "sjis": "japanese", "swe7": "swedish", "tis620": "thai", "ujis": "japanese",
}  # fmt: skip
_GENERAL: Final = frozenset(
    {
        "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "geostd8", "greek",
        "hebrew", "keybcs2", "koi8r", "koi8u", "latin2", "latin7", "macce", "macroman", "ucs2", "utf8", "utf8mb3",
        "utf8mb4", "utf16", "utf16le", "utf32",
    }
)  # fmt: skip
_BYTES_MAX: Final = {
    "big5": 2, "cp932": 2, "eucjpms": 3, "euckr": 2, "gb18030": 4, "gb2312": 2, "gbk": 2, "sjis": 2, "ucs2": 2,
    "ujis": 3, "utf8": 3, "utf8mb3": 3, "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4,
}  # fmt: skip
UNICODE: Final = frozenset({"utf8", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"})
# From these versions on `utf8` is shown as `utf8mb3` (MySQL: character sets since 8.0.24, collations since 8.0.30).
_UTF8MB3_SINCE: Final = {True: 100600, False: 80030}
_UCA1400_SINCE: Final = 110500


def shown_charset(name: str, server: ServerVersion) -> str:
    """The name of a character set as the server shows it. Raises DDLError for one we don't know."""
    known = name.lower()
    if known in ("utf8", "utf8mb3"):
        return "utf8mb3" if server.number >= _UTF8MB3_SINCE[server.mariadb] else "utf8"
    if known != "binary" and known not in _DEFAULTS and known not in _GENERAL:
        raise DDLError(f"unknown character set {name!r}", remedy=REPORT)
    return known


def default_collation(charset: str, server: ServerVersion) -> str:
    """The collation that a character set (by its shown name) has when none is given."""
    if charset == "binary":
        return "binary"
    if charset == "utf8mb4" and not server.mariadb and server.number >= 80000:
        return "utf8mb4_0900_ai_ci"
    if server.mariadb and server.number >= _UCA1400_SINCE and charset in UNICODE:
        return f"{charset}_uca1400_ai_ci"
    return f"{charset}_{_DEFAULTS.get(charset, 'general')}_ci"


def binary_collation(charset: str) -> str:
    """The collation that the attribute BINARY gives to a character set."""
    return "binary" if charset == "binary" else f"{charset}_bin"


def collation_pair(collation: str, charset: str, server: ServerVersion) -> tuple[str, str]:
    """(charset, collation) as shown of one as written; charset: what a short name (`uca1400_ai_ci`) means."""
    name = collation.lower()
    if name == "binary":
        return "binary", "binary"
    if name.startswith("uca1400_"):
        return charset, f"{charset}_{name}"
    head, _, rest = name.partition("_")
    shown = shown_charset(head, server)
    return shown, f"{shown}_{rest}"


def server_default(server: ServerVersion) -> tuple[str, str]:
    """(charset, collation) that a server of this version starts with when nobody configured it."""
    if server.mariadb:
        charset = "utf8mb4" if server.number >= 110600 else "latin1"
    else:
        charset = "utf8mb4" if server.number >= 80000 else "latin1"
    return charset, default_collation(charset, server)


def bytes_per_character(charset: str) -> int:
    """The most bytes that one character takes."""
    return _BYTES_MAX.get(charset, 1)
