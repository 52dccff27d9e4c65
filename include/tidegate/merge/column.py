"""A column of silver, as it is created: one value for the source's columns and for the system's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.computed.row_expressions import COMPUTED_METADATA
from tidegate.masks.masking import MASK_METADATA

# Key in a column's metadata in Delta's schema: the column at the source.
SOURCE_METADATA: Final = "tidegate.source"


@dataclass(frozen=True, slots=True)
class SilverColumn:
    """name, Spark SQL type, and the source's comment. source: its type there, and its name where
    silver has another. mask, computed: the identity of the pipeline file's rule.
    """

    name: str
    type: str
    comment: str = ""
    mask: str = ""
    computed: str = ""
    source: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The column's metadata in silver's schema."""
        said = {"comment": self.comment, MASK_METADATA: self.mask, COMPUTED_METADATA: self.computed}
        said[SOURCE_METADATA] = self.source
        return {key: text for key, text in said.items() if text}
