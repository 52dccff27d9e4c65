"""Silver tables of an object store as DuckDB can read them here: copies of one version's files on this machine.

In:  a lake, a table's path and version.
Out: a folder with a Delta table of one commit, whose rows are those of that version.

The installed DuckDB can't reach an object store. A file's name is used only once, so a file that two versions share
isn't fetched again. The files are copied as they are; the lake's own reading of the log decides which files a version
has (delta/table/state.py).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tidegate.delta.table.state import TableState
from tidegate.errors import SilverReadError
from tidegate.lake.files import LakeFiles
from tidegate.upsert.deletions.deletion_vector import stored_path

_THREADS: Final = 4
_PIECE: Final = 8 << 20


class Copies:
    """The copies of one lake. Close it: the copies go then."""

    def __init__(self, lake: LakeFiles) -> None:
        self._lake = lake
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-verify-"))
        self._made: dict[str, tuple[int, Path]] = {}

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def at(self, path: str, version: int) -> str:
        """The folder of a table at a version, which is version 0 there. The table's copy before that is gone then.

        Raises SilverReadError when the version can't be read any more, or isn't whole in its folder.
        """
        before = self._made.get(path)
        if before is not None and before[0] == version:
            return str(before[1])
        state = self._lake.log(path).state_at(version)
        if state is None:
            raise SilverReadError(
                f"version {version} can't be read any more",
                where=self._lake.uri(path),
                remedy="verify it again; a cut's versions are kept for maintain.keep_cuts_hours",
            )
        folder = self._folder / f"{blake2b(path.encode(), digest_size=8).hexdigest()}-{version}"
        self._fetch(path, state, folder, before[1] if before else None)
        self._made[path] = (version, folder)
        if before is not None:
            shutil.rmtree(before[1], ignore_errors=True)
        return str(folder)

    def _fetch(self, path: str, state: TableState, folder: Path, before: Path | None) -> None:
        names = {file.local_path for file in state.files}
        vectors = [file.deletion_vector for file in state.files]
        try:
            names |= {
                stored_path(self._lake, path, vector).removeprefix(f"{path}/")
                for vector in vectors
                if vector is not None and vector.storage_type != "i"
            }
        except ValueError as error:
            what = f"a deletion vector isn't in the table's folder: {error}"
            raise SilverReadError(what, where=self._lake.uri(path), remedy="a snapshot reads the table anew") from error

        def fetch(name: str) -> None:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if before is not None and (known := before / name).exists():
                target.hardlink_to(known)
                return
            with self._lake.open(f"{path}/{name}") as source, target.open("wb") as sink:
                while piece := source.read(_PIECE):
                    sink.write(piece)

        try:
            with ThreadPoolExecutor(_THREADS, "copies") as pool:
                list(pool.map(fetch, sorted(names)))
        except FileNotFoundError as error:
            what = f"a file of its version {state.version} isn't there: {error.filename or error}"
            raise SilverReadError(what, where=self._lake.uri(path), remedy="a snapshot reads the table anew") from error
        log = folder / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        actions = [{"protocol": dict(state.protocol)}, {"metaData": dict(state.metadata)}]
        actions += [{"add": {**file.action, "dataChange": True}} for file in state.files]
        (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
