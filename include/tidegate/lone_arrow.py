"""pyarrow without pandas, in every process of tidegate.

In:  nothing.
Out: a pyarrow that takes lists for lists. It would import pandas for its first array otherwise: some 40 MiB and half a
     second of CPU in each process, for nothing.

Other people's code in Airflow's processes may use pandas later. Its import then tells pyarrow, as if pyarrow had
imported it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PANDAS = "pandas"


class _LatePandas:
    """A finder: hides pandas from pyarrow's first look, and finds it for everybody else."""

    def __init__(self) -> None:
        self.hidden_from: int | None = threading.get_ident()

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name != _PANDAS:
            return None
        if self.hidden_from == threading.get_ident():
            raise ModuleNotFoundError(name, name=name)
        if self in sys.meta_path:  # another thread may import it at the same moment
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _tell_when_loaded(spec.loader)
        return spec


def _tell_when_loaded(loader: Any) -> None:
    load = loader.exec_module

    def load_and_tell(module: ModuleType) -> None:
        load(module)
        from pyarrow.lib import _pandas_api

        _pandas_api.compat  # noqa: B018 - imports what pyarrow needs of pandas

    loader.exec_module = load_and_tell


def without_pandas() -> None:
    """Called before the first array. Does nothing where pandas is imported already."""
    import pyarrow as pa

    if _PANDAS in sys.modules:
        return
    finder = _LatePandas()
    sys.meta_path.insert(0, finder)
    pa.array([])  # pyarrow looks for pandas here, once
    finder.hidden_from = None


without_pandas()
