"""The desk of a person's actions: the pipeline and its lake, the connections, and who acts.

In:  a pipeline, its lake, connections by id, an Author.
Out: Desk, and the recording of an action at it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from tidegate.config import Pipeline
from tidegate.connections import Connections
from tidegate.lake.files import LakeFiles
from tidegate.lake.people.audit import Author, PersonAction, Result, recorded
from tidegate.lake.standing.followed import check_owner
from tidegate.tables.actions_table import Act


@dataclass(frozen=True, slots=True)
class Desk:
    """connections: of the sources. id: 32 hex digits, by which an action happens once; "": a new one for each."""

    pipeline: Pipeline
    lake: LakeFiles
    connections: Connections
    author: Author
    id: str = ""

    @property
    def name(self) -> str:
        """The pipeline's."""
        return self.pipeline.pipeline

    def recorded(self, act: Act, tables: tuple[str, ...], subject: str = "") -> AbstractContextManager[Result]:
        """As audit.recorded. Raises LakeRefused, too, in another pipeline's lake."""
        check_owner(self.lake, self.name)
        ids = {"id": self.id} if self.id else {}
        return recorded(self.lake, PersonAction(self.name, act, tables, self.author, " ".join(subject.split()), **ids))
