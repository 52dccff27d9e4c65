"""A statement's bytes as text with the same meaning in UTF-8, whatever character set its session
had.

In:  the bytes of a QUERY event; the session's character sets of client and connection; its
     sql_mode.
Out: text. Its quotes and backslashes are those of the bytes. Its names and literals have the
     characters the server saw.

Both servers look for quotes, backslashes and words in the bytes, and convert afterwards, so 0x60 is
a backtick even in swe7, where it is also an é. 0x5C after 0x83 is half a character in sjis. Two
bytes of sjis can be a backslash without a character to escape. Names are converted from the
client's set (`binary` means UTF-8). Literals go through the connection's set, and a character it
lacks becomes a question mark. After an introducer (_latin1'...', N'...') they stay as they are. A
literal of bytes (a binary connection) is written in hexadecimal, which means the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ORACLE, unescape
from tidegate.schema.model.charset_text import UTF8, codec_of, decode_text, encode_text, text_in

# Sets whose second byte of a character may be ASCII. In other sets a byte below 0x80 is always that ASCII character.
_DOUBLE: Final = {
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "sjis": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
    "gb18030": rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])",
}
# Sets with bytes beyond ASCII that the servers' readers take as white space.
_SPACE_A0: Final = frozenset(
    {"armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7"}
)
_SPACE_FF: Final = frozenset({"cp852", "cp866", "keybcs2"})
_SWE7_LETTERS: Final = rb"\x5b-\x5e\x7b\x7d\x7e"
# MariaDB 11.4 loses the byte after a character of a quoted name if that character ends like the quote.
_HALF_A_QUOTE: Final = re.compile(rb"[\x80-\xff]`(?!`?\Z)")
# Introducers of sets in which ASCII text has other bytes.
_WIDE: Final = re.compile(rb"_(?:ucs2|utf16|utf16le|utf32|swe7)\b", re.IGNORECASE)
_WIDE_SETS: Final = ("ucs2", "utf16", "utf32")
# A comment may follow an introducer.
_INTRODUCER: Final = re.compile(rb"\b(?:_[0-9A-Za-z]+\s*(?:['\"#]|/\*|\*/|--)|N['\"])", re.IGNORECASE)
# CREATE TABLE ... SELECT, or LIKE a temporary table: the server writes the statement itself, in UTF-8.
_SERVER_WROTE: Final = re.compile(
    rb"CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?(?P<q>[`\"])(?:(?!(?P=q)).|(?P=q){2})*(?P=q)"
    rb"(?:\.(?P=q)(?:(?!(?P=q)).|(?P=q){2})*(?P=q))? \(\n  .*\n\)",
    re.DOTALL,
)
_START: Final = b"START TRANSACTION"
_SHOWN: Final = b" DEFAULT CHARSET="  # in the text of SHOW CREATE TABLE, and so in dumps


class StatementText(NamedTuple):
    """legible: whether text is exact except for comments; else U+FFFD stands for bytes without a
    text.
    """

    text: str
    legible: bool


def statement_text(
    raw: bytes, client: str, connection: str, sql_mode: int, *, mariadb: bool = False, has_rows: bool = False
) -> StatementText:
    """client, connection: names of character sets, "" for an unknown one. has_rows: whether MariaDB
    logged it in one transaction with rows; it does so only for CREATE TABLE ... SELECT.
    """
    if raw.isascii() and client != "swe7" and not _WIDE.search(raw) and not connection.startswith(_WIDE_SETS):
        return StatementText(raw.decode("ascii"), True)
    if client in UTF8 and connection in (client, "utf8mb4") and not _INTRODUCER.search(raw):
        try:
            return StatementText(raw.decode(codec_of(client)), True)
        except UnicodeDecodeError:
            pass
    certain = True
    if client not in UTF8 and client != "binary" and (server_wrote := _SERVER_WROTE.match(raw)) and _is_utf8(raw):
        tail = raw[server_wrote.end() :]
        is_whole = has_rows and b"SELECT" not in tail.upper()  # with a query, the session wrote it
        is_quoted = server_wrote["q"] == b"`"  # else it is a dump with ANSI quotes, which names no character set
        if is_whole or (is_quoted and (_START in tail or _SHOWN not in tail)):
            return StatementText(raw.decode(), True)
        certain = False  # a dump with such names, or the server's own text: only the server knows
    reading = _Reading(client, connection, sql_mode, mariadb=mariadb)
    text = reading.text_of(raw)
    return StatementText(text, reading.legible and certain and client != "")


def _is_utf8(raw: bytes) -> bool:
    try:
        return not raw.isascii() and bool(raw.decode())
    except UnicodeDecodeError:
        return False


@lru_cache(maxsize=64)
def _pieces(client: str, *, plain: bool, ansi: bool) -> re.Pattern[bytes]:
    """The parts of a statement, as the servers' readers split its bytes. Possessive quantifiers
    keep it linear.
    """
    double = _DOUBLE.get(client)

    def inside(quote: bytes, *, escapes: bool) -> bytes:
        stops = quote + (rb"\\" if escapes else b"")
        unit = rb"[^" + stops + rb"\x80-\xff]++|" + double + rb"|[\x80-\xff]" if double else rb"[^" + stops + rb"]++"
        return quote + rb"(?:" + unit + (rb"|\\." if escapes else b"") + rb"|" + quote * 2 + rb")*+" + quote

    high = rb"\x80-\x9f\xa1-\xff" if client in _SPACE_A0 else rb"\x80-\xfe" if client in _SPACE_FF else rb"\x80-\xff"
    letters = rb"0-9A-Za-z_$" + (_SWE7_LETTERS if client == "swe7" else b"")
    word = rb"(?:[" + letters + rb"]++" + (rb"|" + double if double else b"") + rb"|[" + high + rb"])++"
    return re.compile(
        rb"(?P<word>"
        + word
        + rb")|(?P<string>"
        + inside(b"'", escapes=not plain)
        + (b"" if ansi else rb"|" + inside(b'"', escapes=not plain))
        + rb")|(?P<name>"
        + inside(b"`", escapes=False)
        + (rb"|" + inside(b'"', escapes=False) if ansi else b"")
        + rb")|(?P<comment>/\*(?!M?!).*?\*/|\#[^\n]*+|--(?=[\x00-\x20]|$)[^\n]*+)"
        + rb"|(?P<mark>/\*M?!\d*|\*/)|(?P<space>[ \t-\r]++)|(?P<other>.)",
        re.DOTALL,
    )


class _Reading:
    """A statement while it is read. legible: whether all names and literals so far had a text."""

    def __init__(self, client: str, connection: str, sql_mode: int, *, mariadb: bool) -> None:
        self.legible = True
        self._loses_bytes = mariadb and client in _DOUBLE
        self._client = client
        self._names = "utf8mb4" if client == "binary" else client
        self._connection = connection
        self._plain = bool(sql_mode & NO_BACKSLASH_ESCAPES)
        self._ansi = bool(sql_mode & (ANSI_QUOTES | ORACLE))
        self._done: list[str] = []
        self._word = b""  # the piece directly before this one, if it was a word
        self._string_is_plain: bool | None = None  # if that piece was a string: whether it is the same in any set

    def text_of(self, raw: bytes) -> str:
        """The whole statement."""
        for piece in _pieces(self._client, plain=self._plain, ansi=self._ansi).finditer(raw):
            kind, data = str(piece.lastgroup), piece[0]
            if kind == "mark":  # of a comment that servers execute: the word before it is also before its content
                self._done.append(data.decode("ascii"))
                continue
            if kind == "space":
                self._done.append(data.decode("ascii"))
                continue
            if kind == "comment":
                self._done.append(_lossy(data))
                continue
            self._done.append(self._text(kind, data))
            self._word = data if kind == "word" else b""
            self._string_is_plain = self._joined(data) if kind == "string" else None
        return "".join(self._done)

    def _text(self, kind: str, data: bytes) -> str:
        if kind == "string":
            return self._string(data)
        if data.isascii() and not (self._client == "swe7" and kind != "other"):
            return data.decode("ascii")
        if kind == "other":  # white space, or a byte that no executed statement has outside of quotes
            return " " if data in b"\xa0\xff" else "\ufffd"
        if kind == "word":
            return self._decoded(self._names, data)
        quote = data[:1]
        if self._loses_bytes and _HALF_A_QUOTE.search(data):
            self.legible = False
        name = self._decoded(self._names, data[1:-1].replace(quote * 2, quote))
        return _quoted(name, quote.decode(), plain=True)

    def _string(self, data: bytes) -> str:
        introducer = self._introducer()
        set_of = introducer or self._client
        if not introducer and self._connection.startswith(_WIDE_SETS) and self._said("DEFAULT"):
            return self._wide(data)
        if data.isascii() and set_of != "swe7" and not set_of.startswith(("ucs", "utf16", "utf32")):
            return data.decode("ascii")
        body, quote = self._body(data), data[:1].decode()
        if self._said("COMMENT"):  # it is converted like a name
            return _quoted(self._decoded(self._names, body, matters=False), quote, plain=self._plain)
        if introducer == "binary" or (not introducer and self._connection == "binary"):
            if introducer:
                self._unsay_introducer()
            return f"0x{body.hex().upper()}" if body else "''"
        if introducer:
            text = self._decoded(introducer, body)
        elif self._client == "binary":
            text = self._decoded(self._connection, body)
        else:
            text = self._decoded(self._client, body)
            if self._connection not in ("", self._client):
                text = text_in(self._connection, text)
        return _quoted(text, quote, plain=self._plain)

    def _joined(self, data: bytes) -> bool:
        """Adjacent strings are one. Joined from several sets, the text may differ from that of each
        string alone.
        """
        plain = data.isascii() and self._done[-1][:1] in ("'", '"')
        if self._string_is_plain is not None and not (plain and self._string_is_plain):
            apart = self._client == "binary" or self._connection not in ("", self._client)
            self.legible = self.legible and not (apart or self._done[-1].startswith("0x"))
        return plain

    def _introducer(self) -> str:
        """The character set the word before a string gives to it; "" for none."""
        word = self._word.lower()
        if word == b"n":
            return "utf8mb3"
        name = word[1:].decode("ascii", "replace") if word.startswith(b"_") else ""
        if name in ("", "binary"):
            return name
        try:
            codec_of(name)
        except UnsupportedValue:
            return ""
        return name

    def _unsay_introducer(self) -> None:
        while not self._done.pop().strip():
            continue

    def _body(self, data: bytes) -> bytes:
        """The bytes a string stands for. Latin-1 keeps each byte, and half a character is never a
        quote.
        """
        double = _DOUBLE.get(self._client)
        if double is None:
            return unescape(data.decode("latin-1"), plain=self._plain).encode("latin-1")
        quote = data[:1]
        escape = rb"|(?P<escape>\\.)" if not self._plain else b""
        units = []
        for unit in re.finditer(double + escape + rb"|(?P<pair>" + quote * 2 + rb")|.", data[1:-1], re.DOTALL):
            if unit.lastgroup == "pair":
                units.append(quote)
            elif unit.lastgroup == "escape":
                units.append(unescape(f"'{unit[0].decode('latin-1')}'", plain=False).encode("latin-1"))
            else:
                units.append(unit[0])
        return b"".join(units)

    def _decoded(self, charset: str, data: bytes, *, matters: bool = True) -> str:
        try:
            return decode_text(charset, data)
        except UnsupportedValue:
            self.legible = self.legible and not matters
            return _lossy(data)

    def _wide(self, data: bytes) -> str:
        """A default with two or four bytes per character: a column of bytes takes these bytes."""
        text = self._decoded(self._names, self._body(data))
        wide = encode_text(self._connection, text)
        if wide is None:
            self.legible = False
        return f"_{self._connection} 0x{wide.hex()}" if wide else "''"

    def _said(self, word: str) -> bool:
        """Whether this string follows COMMENT, which doesn't affect rows, or DEFAULT."""
        said = [piece for piece in self._done[-4:] if piece.strip() not in ("", "=")]
        return bool(said) and said[-1].upper() == word


def _quoted(text: str, quote: str, *, plain: bool) -> str:
    escaped = text if plain else text.replace("\\", "\\\\")
    return quote + escaped.replace(quote, quote * 2) + quote


def _lossy(data: bytes) -> str:
    """The text if it is valid UTF-8, else its ASCII part."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else "\ufffd" for byte in data)
