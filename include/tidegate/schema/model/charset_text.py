"""Character sets of MySQL and MariaDB: from a collation's number to a name, from a name to a decoder.

In:  collation ids (in TABLE_MAP metadata and QUERY status variables), character set names (schema_history), bytes.
Out: names, and text exactly as the server's own CONVERT(... USING utf8mb4) gives it.

A character set without an exact decoder is an error (UnsupportedValue), and so are bytes that it leaves
undefined: no value is changed silently.
"""

from __future__ import annotations

import codecs
from functools import cache, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.errors import UnsupportedValue
from tidegate.remedy import REFILL, REPORT
from tidegate.schema.model.charset_tables import BIG5, EUCJPMS, SWE7, UPPER

UNDEFINED: Final = "\ufffe"  # as codecs.charmap_decode takes it


def _run(start: bytes, characters: str) -> list[tuple[bytes, str]]:
    """The sequence start and those after it in its row, with their characters."""
    sequences = ((start[:-1] + bytes([start[-1] + n]), character) for n, character in enumerate(characters))
    return [(sequence, character) for sequence, character in sequences if character != UNDEFINED]


def _user_defined() -> dict[bytes, str]:
    """Rows 0xF5 to 0xFE of the two planes of EUC-JP: Unicode's private area from U+E000, and from
    U+E3AC.
    """
    private: dict[bytes, str] = {}
    for plane, first in ((b"", 0xE000), (b"\x8f", 0xE3AC)):
        for row in range(10):
            characters = "".join(chr(first + 94 * row + n) for n in range(94))
            private.update(_run(plane + bytes([0xF5 + row, 0xA1]), characters))
    return private


# Collation ids per character set, from information_schema of MySQL 9.7 and MariaDB 11.4 together (they never disagree).
_COLLATIONS: Final = """
armscii8 32 64 1056 1088
ascii 11 65 1035 1089
big5 1 84 1025 1108
binary 63
cp1250 26 34 44 66 99 1050 1090
cp1251 14 23 50-52 1074-1075
cp1256 57 67 1081 1091
cp1257 29 58-59 1082-1083
cp850 4 80 1028 1104
cp852 40 81 1064 1105
cp866 36 68 1060 1092
cp932 95-96 1119-1120
dec8 3 69 1027 1093
eucjpms 97-98 1121-1122
euckr 19 85 1043 1109
gb18030 248-250
gb2312 24 86 1048 1110
gbk 28 87 1052 1111
geostd8 92-93 1116-1117
greek 25 70 1049 1094
hebrew 16 71 1040 1095
hp8 6 72 1030 1096
keybcs2 37 73 1061 1097
koi8r 7 74 1031 1098
koi8u 22 75 1046 1099
latin1 5 8 15 31 47-49 94 1032 1071
latin2 2 9 21 27 77 1033 1101
latin5 30 78 1054 1102
latin7 20 41-42 79 1065 1103
macce 38 43 1062 1067
macroman 39 53 1063 1077
sjis 13 88 1037 1112
swe7 10 82 1034 1106
tis620 18 89 1042 1113
ucs2 35 90 128-151 159 640-642 1059 1114 1152 1174 2560-2727 2744-2759
ujis 12 91 1036 1115
utf16 54-55 101-124 672-674 1078-1079 1125 1147 2816-2983 3000-3015
utf16le 56 62 1080 1086
utf32 60-61 160-183 736-738 1084-1085 1184 1206 3072-3239 3256-3271
utf8mb3 33 76 83 192-215 223 576-578 1057 1107 1216 1238 2048-2215 2232-2247
utf8mb4 45-46 224-247 255-271 273-275 277-294 296-298 300 303-323 608-610 1069-1070 1248 1270 2304-2471 2488-2503
"""

# Python's codecs that agree with both servers on every byte they define, but for _OVERRIDES
# (tests/unit/binlog/test_charsets.py asks the servers). latin1 is cp1252 with the C1 controls in its holes.
_CODECS: Final = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "latin1": "cp1252",
    **dict.fromkeys(("armscii8", "dec8", "geostd8", "keybcs2", "swe7"), "latin_1"),
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "tis620": "tis_620",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "big5": "big5",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
}
_OVERRIDES: Final[dict[str, dict[int, str]]] = {
    "latin1": {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
    "cp866": {0xFC: "ⁿ", 0xFD: "²"},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), UNDEFINED),
    "greek": {0xA1: "ʽ", 0xA2: "ʼ", **dict.fromkeys((0xA4, 0xA5, 0xAA), UNDEFINED)},
    "hebrew": {0xAF: "‾"},
    "koi8u": {0x95: "•"},
    # the servers' own tables say U+FFFD here, and in seven places of big5
    "tis620": dict.fromkeys((0xA0, *range(0xDB, 0xDF), *range(0xFC, 0x100)), "\ufffd"),
    "swe7": {**SWE7, **dict.fromkeys(range(0x80, 0x100), UNDEFINED)},
    **{charset: dict(enumerate(upper, 0x80)) for charset, upper in UPPER.items()},
}
# Characters that Python's codec gives where the servers give another; no other bytes stand for the left one.
_REPLACED: Final[dict[str, dict[int, str]]] = {
    "sjis": {0xFF3C: "\\"},
    "ujis": {0xFF3C: "\\"},
    "eucjpms": {0x301C: "～", 0x2016: "∥", 0x2212: "－", 0xA2: "￠", 0xA3: "￡", 0xAC: "￢"},
    "gb18030": {0xE7C7: "ḿ", 0x1E3F: "\ue7c7"},
}
# Characters of the codec that the servers don't have.
_LACKED: Final = {"cp932": "\x80\uf8f0\uf8f1\uf8f2\uf8f3"}
# Sequences of bytes that the codec lacks, or reads in another way than the servers do.
_SEQUENCES: Final[dict[str, dict[bytes, str]]] = {
    "big5": BIG5,
    "ujis": _user_defined(),
    "eucjpms": {**_user_defined(), **{s: c for start, run in EUCJPMS.items() for s, c in _run(start, run)}},
}
# Here bytes that are all below 0x80 are that ASCII text.
ASCII_BASED: Final = frozenset(_CODECS) - {"ucs2", "utf16", "utf16le", "utf32", "swe7"}
UTF8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
# Bytes per character that a column's length in TABLE_MAP counts; 1 for what isn't named.
WIDEST: Final = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "utf8", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2),
}


# Sets whose characters are one byte each.
SINGLE_BYTE: Final = frozenset(_CODECS) - frozenset(WIDEST)


@cache
def _by_collation() -> dict[int, str]:
    names: dict[int, str] = {}
    name = ""
    for word in _COLLATIONS.split():
        if word[0].isalpha():
            name = word
            continue
        first, _, last = word.partition("-")
        names.update(dict.fromkeys(range(int(first), int(last or first) + 1), name))
    return names


def charset_of_collation(collation: int) -> str:
    """Name of the character set of a collation id; UnsupportedValue when neither server has it."""
    charset = _by_collation().get(collation)
    if charset is None:
        raise UnsupportedValue(f"collation id {collation} is not known", remedy=f"{REPORT}, and the server's version")
    return charset


def same_charset(name: str, other: str) -> bool:
    """Whether two names mean one character set (utf8 is utf8mb3's old name)."""
    return _modern(name) == _modern(other)


def _modern(name: str) -> str:
    return "utf8mb3" if name == "utf8" else name


def codec_of(charset: str) -> str:
    """Python's codec for a character set; UnsupportedValue when there is none that is exact."""
    try:
        return _CODECS[charset]
    except KeyError:
        raise UnsupportedValue(
            f"character set {charset} has no exact decoder here",
            remedy="convert the column to utf8mb4, or leave the table out",
        ) from None


@cache
def _table(charset: str) -> str:
    """256 characters of a single-byte set; U+FFFE marks what is undefined."""
    codec = codec_of(charset)
    characters = []
    for byte in range(256):
        text = bytes([byte]).decode(codec, errors="replace")
        characters.append(_OVERRIDES.get(charset, {}).get(byte, UNDEFINED if text == "\ufffd" else text))
    return "".join(characters)


def decode_text(charset: str, data: bytes) -> str:
    """Bytes in a character set as text. UnsupportedValue when the set, or these bytes in it, have no exact text."""
    codec = codec_of(charset)
    try:
        if charset in SINGLE_BYTE:
            return codecs.charmap_decode(data, "strict", _table(charset))[0]
        if charset in _SEQUENCES:
            return _by_character(charset, codec, data)
        text = data.decode(codec)
        if charset == "ucs2" and 2 * len(text) != len(data):
            _refuse_pairs(codec, data)
        return text.translate(_REPLACED[charset]) if charset in _REPLACED else text
    except UnicodeDecodeError as error:
        shown = error.object[error.start : error.end].hex()  # the rest of the value may be nobody's to see
        raise UnsupportedValue(
            f"bytes {shown} are not valid {charset}",
            remedy=REFILL.after("repair the value at the source, or store it in a binary column"),  # the log keeps it
        ) from None


def decode_member(charset: str, data: bytes) -> str:
    """A member of ENUM or SET. Members of a binary one are bytes: UTF-8, or UnsupportedValue."""
    if charset != "binary":
        return decode_text(charset, data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnsupportedValue(
            f"member {data.hex()} of a binary ENUM or SET is no text",
            remedy="give the column a character set, or leave the table out",
        ) from None


def _byte(value: int) -> bytes:
    return bytes([value])


@cache
def _own_codes(charset: str) -> dict[str, bytes]:
    """The codes of characters that a set's codec doesn't encode as it decodes them."""
    if charset in SINGLE_BYTE:
        table = _table(charset)
        own = dict(zip(reversed(table), map(_byte, reversed(range(len(table)))), strict=True))
        own.pop(UNDEFINED, None)
        return own
    sequences = _SEQUENCES.get(charset, {})
    codes = dict(zip(reversed(sequences.values()), reversed(sequences), strict=True))
    for point, character in _REPLACED.get(charset, {}).items():
        codes[character] = chr(point).encode(codec_of(charset))
    return codes


@lru_cache(maxsize=4096)
def _code(charset: str, character: str) -> bytes | None:
    """A character's code in a set; None where the set lacks it."""
    own = _own_codes(charset).get(character)
    if charset in SINGLE_BYTE:
        return own
    for code in (character.encode(codec_of(charset), "ignore"), own):
        try:
            if code and decode_text(charset, code) == character:
                return code
        except UnsupportedValue:
            continue
    return None


def holds(charset: str, character: str) -> bool:
    """Whether a set has a character."""
    beyond = charset in ("utf8mb3", "utf8") and character > "\uffff"
    return not beyond and character not in _LACKED.get(charset, "") and _code(charset, character) is not None


def text_in(charset: str, text: str) -> str:
    """A text as the servers convert it into a set: a question mark stands for each character that it lacks."""
    return "".join(character if holds(charset, character) else "?" for character in text)


def encode_text(charset: str, text: str) -> bytes | None:
    """A text's bytes in a set; None where it has characters that the set lacks."""
    data = bytearray()
    for character in text:
        code = _code(charset, character)
        if code is None or not holds(charset, character):
            return None
        data += code
    return bytes(data)


# Sets with characters that have more than one code, which the server tells apart.
TWICE: Final = frozenset({"armscii8", "big5", "cp932", "eucjpms", "sjis", "tis620", "ujis"})


@cache
def _second_codes(charset: str) -> dict[str, tuple[bytes, ...]]:
    """Characters with several codes: all but the one that Python's codec writes, or else the first."""
    codes: dict[str, list[bytes]] = {}
    leads = () if charset in SINGLE_BYTE else range(0x81, 0xFF)
    sequences = [bytes([byte]) for byte in range(0x100)] + [bytes([a, b]) for a in leads for b in range(0x40, 0xFF)]
    if charset in ("ujis", "eucjpms"):
        sequences += [b"\x8f" + bytes([a, b]) for a in range(0xA1, 0xFF) for b in range(0xA1, 0xFF)]
    for sequence in sequences:
        try:
            text = decode_text(charset, sequence)
        except UnsupportedValue:
            continue
        if len(text) == 1:
            codes.setdefault(text, []).append(sequence)
    others = {}
    for text, several in codes.items():
        usual = text.encode(codec_of(charset), "ignore")
        first = usual if usual in several else several[0]
        if len(several) > 1:
            others[text] = tuple(code for code in several if code != first)
    return others


def has_second_code(charset: str, data: bytes, text: str) -> bool:
    """Whether bytes may have a character in a code that isn't its usual one: then other bytes read the same."""
    several = _second_codes(charset)
    return any(code in data for character in several.keys() & set(text) for code in several[character])


def _refuse_pairs(codec: str, data: bytes) -> None:
    """The halves of a pair are two characters of ucs2, which UTF-8 doesn't have."""
    raise UnicodeDecodeError(codec, data, 0, len(data), "surrogates")


@cache
def utf8_table(charset: str) -> npt.NDArray[np.uint32]:
    """For each byte of a single-byte set: its character's UTF-8, and in the highest byte how long
    that is; 0: none.
    """
    packed = np.zeros(256, np.uint32)
    for byte, character in enumerate(_table(charset)):
        encoded = b"" if character == UNDEFINED else character.encode()
        packed[byte] = int.from_bytes(encoded, "little") | len(encoded) << 24
    return packed


def _by_character(charset: str, codec: str, data: bytes) -> str:
    """A set with sequences of its own: the codec as long as none of them is near, else character by character."""
    try:
        text = "" if any(sequence in data for sequence in _read_otherwise(charset)) else data.decode(codec)
    except UnicodeDecodeError:
        text = ""
    own, at = _SEQUENCES[charset], len(data) if text else 0
    pieces = [text]
    while at < len(data):
        size = 1 if data[at] < 0x80 else 3 if data[at] == 0x8F and charset != "big5" else 2
        piece = data[at : at + size]
        pieces.append(own[piece] if piece in own else piece.decode(codec))
        at += size
    return "".join(pieces).translate(_REPLACED.get(charset, {}))


@cache
def _read_otherwise(charset: str) -> tuple[bytes, ...]:
    """Sequences of a set that its codec takes for something else."""
    codec = codec_of(charset)
    return tuple(sequence for sequence in _SEQUENCES[charset] if "\ufffd" not in sequence.decode(codec, "replace"))
