"""A column of silver, as it is created: one value for the source's columns and for the system's."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.masks import MASK_METADATA
from tidegate.row_expressions import COMPUTED_METADATA


@dataclass(frozen=True, slots=True)
class SilverColumn:
    """name, Spark SQL type, and the source's own type and comment as the column's comment. mask,
    computed: the identity of the pipeline file's rule.
    """

    name: str
    type: str
    comment: str = ""
    mask: str = ""
    computed: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The column's metadata in silver's schema."""
        said = {"comment": self.comment, MASK_METADATA: self.mask, COMPUTED_METADATA: self.computed}
        return {key: text for key, text in said.items() if text}
