"""DDL text as tokens, and a cursor over them.

In:  the text of a statement, the sql_mode under which it ran, the server that ran it.
Out: tokens without white space and comments. Versioned comments (`/*!50100 ... */`, `/*M! ... */`)
     are opened if that server opened them, and skipped if it didn't.

Lexical rules: MySQL Reference Manual, "Language Structure"; MariaDB Knowledge Base, "Comment
Syntax". Nothing is interpreted here, and nothing is lost: a character that starts no token is a
token of its own.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tidegate.errors import DDLError
from tidegate.remedy import REPORT
from tidegate.schema.model.server import ServerVersion

# Bits of sql_mode (sql/sql_class.h; the same in MySQL and MariaDB, if both have them).
REAL_AS_FLOAT: Final = 1
PIPES_AS_CONCAT: Final = 2
ANSI_QUOTES: Final = 4
ORACLE: Final = 512
MAXDB: Final = 4096
NO_BACKSLASH_ESCAPES: Final = 1 << 20
PAD_CHAR_TO_FULL_LENGTH: Final = 1 << 31

# No meaningful length has more digits. Nor does a whole number of any type (decimals end at 65).
LENGTH_DIGITS: Final = 65


class TokenKind:
    """Kinds of tokens."""

    WORD: Final = "word"  # text as written
    QUOTED: Final = "quoted"  # a quoted identifier; text without its quotes
    STRING: Final = "string"  # text without quotes and escapes
    NUMBER: Final = "number"
    MARK: Final = "mark"  # one character
    END: Final = "end"


class Token(NamedTuple):
    """A token. start, end: its place in the statement.

    upper: for a WORD its text in capitals, else "": so a quoted `select` never counts as a keyword.
    """

    kind: str
    text: str
    upper: str
    start: int
    end: int


# White space belongs to the token after it. The most frequent kinds come first. The possessive quantifiers keep the
# time linear: a quote that never ends is tried once.
_TOKEN: Final = re.compile(
    r"""[ \t-\r]*+(?:
      (?P<word>[A-Za-z_$\x80-\U0010ffff][0-9A-Za-z_$\x80-\U0010ffff]*+)
    | (?P<plain>[(),;=])
    | (?P<backtick>`(?:[^`]++|``)*+`)
    | (?P<string>'(?:[^'\\]++|\\.|'')*+')
    | (?P<double>"(?:[^"\\]++|\\.|"")*+")
    | (?P<number>(?:\d++\.\d*+|(?<![\w$`"])\.\d++|\d++)(?:[eE][+-]?\d++)?(?![\w$]))
    | (?P<digits>\d[0-9A-Za-z_$\x80-\U0010ffff]*+)
    | (?P<line>\#[^\n]*+|--(?=\s|$)[^\n]*+)
    | (?P<open>/\*(?:M?!|T!(?:\[[^\]]*+\])?)\d{0,6})
    | (?P<comment>/\*.*?\*/)
    | (?P<close>\*/)
    | (?P<mark>.)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
# With NO_BACKSLASH_ESCAPES a backslash is an ordinary character.
_PLAIN_TOKEN: Final = re.compile(
    _TOKEN.pattern.replace(r"[^'\\]++|\\.", "[^']++").replace(r'[^"\\]++|\\.', '[^"]++'), re.VERBOSE | re.DOTALL
)
# Before a wildcard the backslash stays; before any other character it goes.
_ESCAPES: Final = {
    "0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_",
}  # fmt: skip
_new = tuple.__new__  # NamedTuple's own __new__ costs as much as a regular expression


def tokens(sql: str, sql_mode: int, server: ServerVersion) -> list[Token]:
    """All tokens of one statement, without a final `;`. Raises DDLError if a quote or comment is
    never closed.
    """
    pattern = _PLAIN_TOKEN if sql_mode & NO_BACKSLASH_ESCAPES else _TOKEN
    all_tokens: list[Token] = []
    add, match = all_tokens.append, pattern.match
    at, depth = 0, 0
    while True:
        piece = match(sql, at)
        assert piece is not None  # `.` and the end match whatever is left
        kind, at = piece.lastgroup, piece.end()
        if kind == "word":
            text = piece[1]
            add(_new(Token, (TokenKind.WORD, text, text.upper(), at - len(text), at)))
        elif kind == "plain":
            add(_new(Token, (TokenKind.MARK, piece[2], "", at - 1, at)))
        elif kind == "end":
            break
        elif kind == "open":
            if _opens(piece["open"], server):
                depth += 1
            else:
                at = _past_comment(sql, at)
        elif kind == "close" and depth:
            depth -= 1
        elif kind not in ("line", "comment"):
            token = _token(str(kind), piece, sql_mode)
            add(token)
            at = token.end
    while all_tokens and all_tokens[-1].text == ";" and all_tokens[-1].kind == TokenKind.MARK:
        all_tokens.pop()
    return all_tokens


def _token(kind: str, piece: re.Match[str], sql_mode: int) -> Token:
    """A token of a less frequent kind."""
    text, start, end = piece[kind], piece.start(kind), piece.end()
    if kind == "digits":
        return Token(TokenKind.WORD, text, text.upper(), start, end)
    if kind == "number":
        return Token(TokenKind.NUMBER, text, "", start, end)
    if kind == "backtick":
        return Token(TokenKind.QUOTED, text[1:-1].replace("``", "`"), "", start, end)
    if kind == "double" and sql_mode & (ANSI_QUOTES | ORACLE):
        return Token(TokenKind.QUOTED, text[1:-1].replace('""', '"'), "", start, end)
    if kind in ("string", "double"):
        return Token(TokenKind.STRING, unescape(text, plain=bool(sql_mode & NO_BACKSLASH_ESCAPES)), "", start, end)
    if text in "'\"`" or piece.string.startswith("/*", start):
        raise DDLError(f"a quote or comment that starts at character {start} never ends", remedy=REPORT)
    return Token(TokenKind.MARK, text[0], "", start, start + 1)


_BOTH_ESCAPES: Final = {quote: re.compile(r"(?s)\\(.)|" + quote * 2) for quote in "'\""}
_COMMENT_ENDS: Final = re.compile(r"/\*|\*/")


def unescape(text: str, *, plain: bool) -> str:
    """The value of a quoted string. plain: under NO_BACKSLASH_ESCAPES."""
    body = text[1:-1]
    if not plain and "\\" in body:
        # Both kinds of escape in one pass: '\\''' must not be read twice.
        both = _BOTH_ESCAPES[text[0]]
        return both.sub(lambda m: text[0] if m[1] is None else _ESCAPES.get(m[1], m[1]), body)
    return body.replace(text[0] * 2, text[0])


def _opens(head: str, server: ServerVersion) -> bool:
    """Whether the server executes the content of a versioned comment that starts with head."""
    if head.startswith("/*T!") or (head.startswith("/*M!") and not server.mariadb):
        return False
    digits = head[head.index("!") + 1 :]
    if len(digits) < 5:  # fewer digits belong to the statement, not to the head; nobody writes that
        return True
    version = int(digits)
    if server.mariadb and not head.startswith("/*M!") and 50700 <= version <= 99999:
        return False  # MariaDB doesn't open comments for MySQL 5.7 and 8
    return version <= server.number


def _past_comment(sql: str, at: int) -> int:
    """The end of a versioned comment that stays closed. One comment may be inside it."""
    depth = 1
    while depth:
        match = _COMMENT_ENDS.search(sql, at)
        if match is None:
            raise DDLError("a versioned comment never ends", remedy=REPORT)
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
    return at


_END: Final = Token(TokenKind.END, "", "", 0, 0)


class Cursor:
    """A place among tokens. Methods take_* move on only if they find what they look for."""

    __slots__ = ("at", "server", "sql", "sql_mode", "tokens")

    def __init__(self, sql: str, sql_mode: int, server: ServerVersion) -> None:
        self.sql = sql
        self.sql_mode = sql_mode
        self.server = server
        self.tokens = [*tokens(sql, sql_mode, server), _END]
        self.at = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        at = self.at + count
        return self.tokens[at] if at < len(self.tokens) else _END

    @property
    def ended(self) -> bool:
        return self.tokens[self.at].kind == TokenKind.END

    def next(self) -> Token:
        """The token here; the cursor moves past it, but never past the end."""
        token = self.tokens[self.at]
        if token.kind != TokenKind.END:
            self.at += 1
        return token

    def take(self, *words: str) -> bool:
        """Move past these keywords if all of them follow."""
        for offset, word in enumerate(words):
            if self.ahead(offset).upper != word:
                return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> str:
        """Move past one of these keywords, and return it; "" if none is here."""
        upper = self.tokens[self.at].upper
        if upper and upper in words:
            self.at += 1
            return upper
        return ""

    def is_mark(self, mark: str) -> bool:
        token = self.tokens[self.at]
        return token.text == mark and token.kind == TokenKind.MARK

    def take_mark(self, mark: str) -> bool:
        if self.is_mark(mark):
            self.at += 1
            return True
        return False

    def expect_mark(self, mark: str) -> None:
        if not self.take_mark(mark):
            raise self.lost(f"`{mark}`")

    def name(self) -> str:
        """An identifier. If the grammar takes nothing else, a double-quoted string is one, too."""
        token = self.tokens[self.at]
        if token.kind in (TokenKind.WORD, TokenKind.QUOTED) or (
            token.kind == TokenKind.STRING and self.sql[token.start] == '"'
        ):
            self.at += 1
            return token.text
        if token.kind == TokenKind.NUMBER and token.text.isdigit():  # `1` alone is no name, but `t.1` may be written so
            self.at += 1
            return token.text
        raise self.lost("a name")

    def length(self, wanted: str, *, digits_max: int = LENGTH_DIGITS) -> int:
        """The number in a length. Only digits before a point count, as in the server:
        `float(10.0)`.
        """
        token = self.tokens[self.at]
        digits = token.text.partition(".")[0]
        if token.kind != TokenKind.NUMBER or not (digits.isascii() and digits.isdigit()) or len(digits) > digits_max:
            raise self.lost(wanted)
        self.at += 1
        return int(digits[:LENGTH_DIGITS])

    def table(self, database: str) -> tuple[str, str]:
        """`table`, `database.table` or `.table` -> (database, table)."""
        self.take_mark(".")
        first = self.folded_name()
        if self.take_mark("."):
            return first, self.folded_name()
        if not database:
            raise self.lost("a database: the session had none, and the name", name=first)
        return self.server.folded(database), first

    def skip_wait(self) -> None:
        """Skip WAIT n and NOWAIT."""
        if self.take("WAIT"):
            self.next()
        self.take("NOWAIT")

    def folded_name(self) -> str:
        """A name of a database or a table in the server's own form."""
        return self.server.folded(self.name())

    def skip_group(self) -> tuple[int, int]:
        """Skip `( ... )`. Returns where its inside starts and ends in the text."""
        start = self.now.end
        self.expect_mark("(")
        depth = 1
        while True:
            token = self.next()
            if token.kind == TokenKind.END:
                raise self.lost("`)`")
            if token.kind == TokenKind.MARK:
                if token.text == "(":
                    depth += 1
                elif token.text == ")":
                    depth -= 1
                    if not depth:
                        return start, token.start

    def skip_one(self) -> None:
        """Skip one token, or a whole group that starts here."""
        if self.is_mark("("):
            self.skip_group()
        elif not self.ended:
            self.at += 1

    def skip_item(self) -> None:
        """Move to the comma or closing parenthesis that ends this item of a list, or to the end."""
        while not (self.ended or self.is_mark(",") or self.is_mark(")")):
            self.skip_one()

    def lost(self, wanted: str, *, name: str = "") -> DDLError:
        """The error for another token in the place of `wanted`."""
        token = self.now
        here = (
            f"`{name}`"
            if name
            else (repr(self.sql[token.start : token.start + 30]) if token.kind != TokenKind.END else "the end")
        )
        return DDLError(f"expected {wanted}, found {here}", remedy=REPORT)
