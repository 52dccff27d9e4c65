"""Character sets of MySQL and MariaDB: from a collation's number to a name, from a name to a decoder.

In:  collation ids (in TABLE_MAP metadata and QUERY status variables), character set names (schema_history), bytes.
Out: names, and text exactly as the server's own CONVERT(... USING utf8mb4) gives it.

A character set without an exact decoder is an error (UnsupportedValue), and so are bytes that it leaves
undefined: no value is changed silently.
"""

from __future__ import annotations

import codecs
from functools import cache
from typing import Final

from tidegate.errors import UnsupportedValue

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
    "greek": {0xA1: "ʽ", 0xA2: "ʼ"},
    "hebrew": {0xAF: "‾"},
    "koi8u": {0x95: "•"},
}
# Characters that Python's codec gives where the servers give another; no other bytes stand for the left one.
_REPLACED: Final[dict[str, dict[int, str]]] = {
    "sjis": {0xFF3C: "\\"},
    "ujis": {0xFF3C: "\\"},
    "eucjpms": {0x301C: "～", 0x2016: "∥", 0x2212: "－", 0xA2: "￠", 0xA3: "￡", 0xAC: "￢"},
    "gb18030": {0xE7C7: "ḿ"},
}
# Here bytes that are all below 0x80 are that ASCII text.
ASCII_BASED: Final = frozenset(_CODECS) - {"ucs2", "utf16", "utf16le", "utf32"}
UTF8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
# Bytes per character that a column's length in TABLE_MAP counts; 1 for what isn't named.
WIDEST: Final = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "utf8", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2),
}


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
    found = _by_collation().get(collation)
    if found is None:
        raise UnsupportedValue(f"collation id {collation} is not known", remedy="report it with the server's version")
    return found


def same_charset(one: str, other: str) -> bool:
    """Whether two names mean one character set (utf8 is utf8mb3's old name)."""
    return _modern(one) == _modern(other)


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
    """256 characters of a single-byte set with overrides; U+FFFE marks what is undefined."""
    codec = codec_of(charset)
    found = []
    for byte in range(256):
        text = bytes([byte]).decode(codec, errors="replace")
        found.append(_OVERRIDES[charset].get(byte, "\ufffe" if text == "\ufffd" else text))
    return "".join(found)


def decode_text(charset: str, data: bytes) -> str:
    """Bytes in a character set as text. UnsupportedValue when the set, or these bytes in it, have no exact text."""
    codec = codec_of(charset)
    try:
        if charset in _OVERRIDES:
            return codecs.charmap_decode(data, "strict", _table(charset))[0]
        text = data.decode(codec)
        return text.translate(_REPLACED[charset]) if charset in _REPLACED else text
    except UnicodeDecodeError as error:
        shown = data[max(error.start - 4, 0) : error.start + 8].hex()
        raise UnsupportedValue(
            f"bytes {shown} are not valid {charset}",
            remedy="repair the value at the source, or store it in a binary column",
        ) from None
