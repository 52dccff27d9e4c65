"""Values that silver has masked.

In:  a rule of tables.masks, the key that it names; columns of decoded rows.
Out: Mask: columns of the same length, NULL where they were NULL, with the type that silver has.

A mask always gives the same text for the same value, so repeated rows and repairs give the values
that silver has. Its identity is kept in silver's schema: the effect of the rule, and a fingerprint
of the key, from which the key can't be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.config import MaskKind, MaskRule
from tidegate.masks.mask_keys import MaskKey

# In a column's metadata in Delta's schema: a mask's identity.
MASK_METADATA: Final = "tidegate.mask"
_COVER: Final = "*"
_LETTER: Final = "x"
_DOMAIN: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_MAIL_DIGITS: Final = 24  # 96 bits: no two addresses meet


@dataclass(frozen=True, slots=True)
class Mask:
    """key: where the rule's kind needs one."""

    rule: MaskRule
    key: MaskKey | None = None

    @property
    def is_null(self) -> bool:
        return self.rule.how is MaskKind.NULL

    @property
    def identity(self) -> str:
        """Equal for masks that act alike."""
        rule = self.rule
        acts = [str(rule.how), rule.value, rule.first, rule.last, self.key.fingerprint if self.key else ""]
        return json.dumps(acts, ensure_ascii=False)

    def text(self, value: str) -> str:
        """A value masked, of a mask that has values."""
        return _MASKS[self.rule.how](value, self)

    def digest(self, text: str) -> bytes:
        assert self.key is not None, "the pipeline file says so of kinds that need it"
        return self.key.digest(text)

    def column(self, values: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The values masked: of their type where nothing is left of them, else strings."""
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
        if self.is_null:
            return pa.nulls(len(values), values.type)
        if self.rule.how is MaskKind.CONSTANT:  # of any type, bytes and vectors as well
            return pc.if_else(values.is_valid(), pa.scalar(self.rule.value), pa.scalar(None, pa.string()))
        encoded = values.cast(pa.string()).dictionary_encode()
        masked = pa.array(list(map(self.text, encoded.dictionary.to_pylist())), pa.string())
        return masked.take(encoded.indices)

    def value(self, value: Any, kind: pa.DataType) -> str | None:
        """One value of a column's Arrow type."""
        masked: str | None = self.column(pa.array([value], kind))[0].as_py()
        return masked


def _partial(value: str, mask: Mask) -> str:
    """The ends of a value. If they would show all of it, all of it is covered."""
    first, last = mask.rule.first, mask.rule.last
    covered = len(value) - first - last
    if covered <= 0:
        return _COVER * len(value)
    return value[:first] + _COVER * covered + value[len(value) - last :]


def _hmac(value: str, mask: Mask) -> str:
    return mask.digest(value).hex()


def _mail(value: str, mask: Mask) -> str:
    """A value that is no address shows nothing."""
    name, _, domain = value.rpartition("@")
    code = mask.digest(value).hex()[:_MAIL_DIGITS]
    return f"{code}@{domain}" if name and _DOMAIN.fullmatch(domain) else code


def _phone(value: str, mask: Mask) -> str:
    """A number gets the same digits however it is written. ASCII signs stay, everything else is
    covered. If a number has only the first digits, these are covered, too.
    """
    digits = "".join(filter(str.isdecimal, value))
    first = mask.rule.first if mask.rule.first < len(digits) else 0
    stream, used, others = mask.digest(digits), 0, ""
    for character in value:
        if not character.isdecimal():
            others += character if character.isascii() and not character.isalpha() else _LETTER
            continue
        if used and used % len(stream) == 0:
            stream = mask.digest(stream.hex())
        others += character if used < first else str(stream[used % len(stream)] % 10)
        used += 1
    return others


_MASKS: Final[Mapping[MaskKind, Callable[[str, Mask], str]]] = {
    MaskKind.PARTIAL: _partial,
    MaskKind.HMAC: _hmac,
    MaskKind.MAIL: _mail,
    MaskKind.PHONE: _phone,
}
