"""A table's state as a log of its own that Spark may change, and what Spark did to it as actions of the table's log.

In:  a TableState; afterwards the commits that were made on the copy.
Out: the copy's first commit; then actions for one commit on that very state. No Spark and no file is touched here.

The copy is a folder of the table. It names the table's live files by absolute URI, as a shallow clone does, and Spark
puts new ones into the folder. The way back is therefore a matter of names: a new file's path gets the folder in front,
a new deletion vector the folder as its prefix (PROTOCOL.md, "Deletion Vector Descriptor Schema"), and a file of the
table the path that its own log has. Statements that undo each other leave nothing: states are compared, not commits.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final
from urllib.parse import unquote

from tidegate.delta.table.actions import domain, remove
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action, TableState, file_key
from tidegate.errors import DeltaUnsupported, LakeRefused
from tidegate.upsert.deletions import z85
from tidegate.upsert.files.statistics import with_both_zeros

_VECTOR_UUID_CHARACTERS: Final = 20
# java.net.URI leaves these characters unquoted in a path. Spark compares such texts, so ours must be equal to the
# letter.
_URI_LEGAL: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'()" + ",;:$&+=" + "/@"
)
_SPACES: Final = frozenset({"Zs", "Zl", "Zp"})
_ASCII: Final = 0x80
_NO_CONTROL: Final = 0xA0  # 0x80 to 0x9f are control characters

# Properties with another value in the copy; None: absent there. Otherwise Spark would do their work in a log that is
# deleted a minute later, or the table's own commit would do it again.
_IN_COPY: Final[Mapping[str, str | None]] = {
    "delta.checkpointInterval": "1000000",
    "delta.autoOptimize": None,
    "delta.autoOptimize.autoCompact": None,
    "delta.randomizeFilePrefixes": None,
    "delta.enableInCommitTimestamps": None,
    "delta.inCommitTimestampEnablementVersion": None,
    "delta.inCommitTimestampEnablementTimestamp": None,
    "delta.universalFormat.enabledFormats": None,
}
_KINDS: Final = {"add", "remove", "cdc", "metaData", "protocol", "domainMetadata", "commitInfo"}


class PrivateCopy:
    """The copy of one state. root: the table's place as Spark takes it. name: the copy's folder.

    first: the actions of its version 0; inside: what the copy is then.
    """

    def __init__(self, state: TableState, root: str, name: str) -> None:
        self.state = state
        self.name = name
        self._root = java_uri(root)
        self._paths: dict[str, str] = {}  # in the copy -> in the table's log
        self._vectors: dict[str, dict[str, Any]] = {}  # likewise; the copy's by place and offset
        self._live: dict[tuple[str, str], LiveFile] = {}  # the table's files by their key in the copy
        adds = [self._borrowed(file) for file in state.files]
        configuration = {**state.configuration, **{k: v for k, v in _IN_COPY.items() if v is not None}}
        self._configuration = {k: v for k, v in configuration.items() if _IN_COPY.get(k, v) is not None}
        self.first: list[Action] = [
            {"protocol": dict(state.protocol)},
            {"metaData": {**state.metadata, "configuration": self._configuration}},
            *(domain(name, text) for name, text in state.domains.items()),
            *({"add": add} for add in adds),
        ]
        self.inside = TableState(name).after(0, self.first)

    def _borrowed(self, file: LiveFile) -> dict[str, Any]:
        path = self._absolute(unquote(file.path)) if _is_relative(file.path) else file.path
        action = {**file.action, "path": path, "dataChange": True}
        if vector := file.action.get("deletionVector"):
            action["deletionVector"] = borrowed = self._borrowed_vector(vector)
            self._vectors[_vector_id(borrowed)] = dict(vector)
        self._paths[path] = file.path
        self._live[file_key(action)] = file
        return action

    def _borrowed_vector(self, vector: Mapping[str, Any]) -> dict[str, Any]:
        if vector["storageType"] != "u":
            return dict(vector)
        return {**vector, "storageType": "p", "pathOrInlineDv": self._absolute(_vector_file(vector))}

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{java_quoted(path)}"

    # --- back --------------------------------------------------------------------------------------

    def translated(self, commits: Sequence[Sequence[Action]]) -> list[Action]:
        """The effect of these commits, versions 1 to n of the copy, as actions of the table's next version.

        Raises LakeRefused or DeltaUnsupported for changes that don't fit into one commit.
        """
        before = after = self.inside
        for version, commit in enumerate(commits, 1):
            self._check(commit)
            after = after.after(version, commit)
        changes = any(_changes_rows(action) for commit in commits for action in commit)
        return [
            *self._facts(before, after),
            *self._removes(after, data_change=changes),
            *self._adds(before, after, data_change=changes),
            *self._change_data(commits),
        ]

    def files(self, actions: Sequence[Action]) -> set[str]:
        """The files of the copy's folder that translated actions name: unquoted paths, relative to the table."""
        paths = set()
        for body in (action.get("add") or action.get("cdc") or {} for action in actions):
            paths.add(unquote(body.get("path", "")))
            vector = body.get("deletionVector") or {}
            if vector.get("storageType") == "u":
                paths.add(_vector_file(vector))
        return {path for path in paths if path.startswith(f"{self.name}/")}

    def _check(self, commit: Sequence[Action]) -> None:
        if odd := {kind for action in commit for kind in action} - _KINDS:
            raise self._refused(f"Spark committed {min(odd)}, which nobody asked for")

    def _facts(self, before: TableState, after: TableState) -> list[Action]:
        """Protocol, schema, properties and domains, as far as they changed."""
        facts: list[Action] = []
        if after.protocol != before.protocol:
            facts.append({"protocol": dict(after.protocol)})
        if after.metadata != before.metadata:
            if after.table_id != before.table_id:
                raise self._refused("Spark gave the table another id")
            facts.append({"metaData": {**after.metadata, "configuration": self._properties(after.configuration)}})
        for name in sorted(before.domains.keys() | after.domains.keys()):
            text = after.domains.get(name)
            if text != before.domains.get(name):
                gone = text is None
                facts.append(domain(name, before.domains[name] if text is None else text, removed=gone))
        return facts

    def _properties(self, after: Mapping[str, str]) -> dict[str, str]:
        """The table's own properties with what changed in the copy's."""
        changed = {name: value for name, value in after.items() if self._configuration.get(name) != value}
        gone = self._configuration.keys() - after.keys()
        return {name: value for name, value in self.state.configuration.items() if name not in gone} | changed

    def _removes(self, after: TableState, *, data_change: bool) -> list[Action]:
        return [remove(file, data_change=data_change) for key, file in self._live.items() if key not in after.live]

    def _adds(self, before: TableState, after: TableState, *, data_change: bool) -> list[Action]:
        adds: list[Action] = []
        floats = _floats(after)
        for key, file in after.live.items():
            known = before.live.get(key)
            if known is None or _without_change(known) != _without_change(file):
                adds.append({"add": {**self._returned(file, floats), "dataChange": data_change}})
        return adds

    def _returned(self, file: LiveFile, floats: AbstractSet[str]) -> dict[str, Any]:
        """The `add` of a file of the copy in the words of the table's log."""
        action = dict(file.action)
        own = action["path"] not in self._paths
        action["path"] = self._own(file.path) if own else self._paths[file.path]
        if own and "stats" in action:
            action["stats"] = with_both_zeros(action["stats"], floats)
        if own and "defaultRowCommitVersion" in action:
            action["defaultRowCommitVersion"] = self.state.version + 1  # Spark gave it the copy's version
        if vector := action.get("deletionVector"):
            known = self._vectors.get(_vector_id(vector))
            action["deletionVector"] = known or self._own_vector(vector)
        return action

    def _own(self, path: str) -> str:
        if not _is_relative(path) or ".." in unquote(path).split("/"):
            raise self._refused(f"Spark added a file that isn't the copy's: {path}")
        return f"{self.name}/{path}"

    def _own_vector(self, vector: Mapping[str, Any]) -> dict[str, Any]:
        if vector["storageType"] == "i":
            return dict(vector)
        if vector["storageType"] != "u":
            raise self._refused(f"Spark added a deletion vector that isn't the copy's: {vector['pathOrInlineDv']}")
        return {**vector, "pathOrInlineDv": self._prefixed(str(vector["pathOrInlineDv"]))}

    def _prefixed(self, name: str) -> str:
        return f"{self.name}/{name}" if len(name) > _VECTOR_UUID_CHARACTERS else f"{self.name}{name}"

    def _change_data(self, commits: Sequence[Sequence[Action]]) -> list[Action]:
        """The `cdc` actions of a change data feed. If a version has one, its readers look at nothing else of that
        version.
        """
        bodies = [
            {**action["cdc"], "path": self._own(action["cdc"]["path"])}
            for c in commits
            for action in c
            if "cdc" in action
        ]
        if bodies and sum(any(_changes_rows(action) for action in commit) for commit in commits) > 1:
            raise DeltaUnsupported(
                "two statements changed rows of a table with a change data feed: one commit can't record both",
                where=self._root,
                remedy="turn the feed off, or take the statement's rows by a snapshot",
            )
        return [{"cdc": body} for body in bodies]

    def _refused(self, what: str) -> LakeRefused:
        return LakeRefused(
            what, where=f"{self._root}/{self.name}", remedy="look for such a setting in apply.spark_conf"
        )


def _floats(state: TableState) -> set[str]:
    """Columns of floats, as the table's statistics name them."""
    columns = [column for column in state.schema["fields"] if column["type"] in ("float", "double")]
    return {
        (column.get("metadata") or {}).get("delta.columnMapping.physicalName", column["name"]) for column in columns
    }


def java_uri(place: str) -> str:
    """A local path or a URL, written literally, as Java's URI of it is written."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return "file:" + java_quoted(place)
    authority, _, path = rest.partition("/")
    return f"{scheme}:{java_quoted('/' + path)}" if not authority else f"{scheme}://{authority}/{java_quoted(path)}"


def java_quoted(path: str) -> str:
    """A path as java.net.URI quotes it: letters of all scripts stay as they are."""
    return "".join(
        letter if _is_legal(letter) else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in path
    )


def _is_legal(letter: str) -> bool:
    if ord(letter) < _ASCII:
        return letter in _URI_LEGAL
    return ord(letter) >= _NO_CONTROL and unicodedata.category(letter) not in _SPACES


def _is_relative(path: str) -> bool:
    return not path.startswith("/") and ":" not in path.split("/", 1)[0]


def _vector_file(vector: Mapping[str, Any]) -> str:
    """Where a vector of type u lies: its path in the table (PROTOCOL.md, "Derived Fields")."""
    name = str(vector["pathOrInlineDv"])
    prefix, code = name[:-_VECTOR_UUID_CHARACTERS], name[-_VECTOR_UUID_CHARACTERS:]
    file = f"deletion_vector_{uuid.UUID(bytes=z85.decode(code))}.bin"
    return f"{prefix}/{file}" if prefix else file


def _vector_id(vector: Mapping[str, Any]) -> str:
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _changes_rows(action: Action) -> bool:
    body = action.get("add") or action.get("remove")
    return body is not None and bool(body.get("dataChange", True))


def _without_change(file: LiveFile) -> dict[str, Any]:
    return {name: value for name, value in file.action.items() if name != "dataChange"}
