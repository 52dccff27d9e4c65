"""What a function of tables.computed may do wrong: its values, its ways to fail, and versions that say too little."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.functions import Distributions
from tests.unit.computed.test_row_functions import column, rows
from tidegate.computed.computed_values import computed
from tidegate.computed.row_expressions import ComputedColumn
from tidegate.computed.row_functions import installed
from tidegate.errors import UnsupportedValue
from tidegate.verify.silver_side import Silver, SilverSide

TEXT = """
import sys
import numpy as np
import pyarrow as pa

scratch = np.empty(9, dtype=np.int64)

class Panic(BaseException):
    pass

def reused(a):
    view = scratch[:len(a)]
    np.multiply(a.to_numpy(), 2, out=view)
    return pa.array(view)

def leaves(a):
    sys.exit()

def panics(a):
    raise Panic("a secret")

def no_text(a):
    return pa.array([bytes([0xFF])] * len(a), pa.binary()).view(pa.string())

def large(a):
    wide = pa.array([12345678] * len(a)).cast(pa.decimal128(22, 2))
    return pa.Array.from_buffers(pa.decimal128(5, 2), len(a), wide.buffers())

def no_number(a):
    return pa.array([float("nan")] * len(a), pa.float64())
"""
NAMES = ("reused", "leaves", "panics", "no_text", "large", "no_number")
POINTS = "\n".join(f"{name} = acme_faults:{name}" for name in NAMES)


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Distributions]:
    folder = tmp_path / "site"
    folder.mkdir()
    made = Distributions(folder)
    made.install("acme-faults", "1.0", "acme_faults", TEXT, POINTS)
    yield made
    made.close()


def test_a_function_that_writes_its_array_again_changes_no_earlier_values(acme: Distributions) -> None:
    """pa.array takes numpy's memory as it is, and rows wait in memory until they are written."""
    first = computed([column("reused")], rows(1, 2))
    computed([column("reused")], rows(30, 40))
    assert first.column("b").to_pylist() == [2, 4]


@pytest.mark.parametrize(
    ("function", "kind", "why"),
    [
        ("leaves", "bigint", "raises SystemExit"),
        ("panics", "bigint", "raises Panic"),
        ("no_text", "string", "gives an invalid array of string"),
        ("large", "decimal(5,2)", "gives an invalid array of decimal128(5, 2)"),
    ],
)
def test_each_way_to_have_no_values_is_one_error(acme: Distributions, function: str, kind: str, why: str) -> None:
    """sys.exit() would end apply as if all were well; compiled libraries raise panics, which aren't Exceptions."""
    with pytest.raises(UnsupportedValue) as caught:
        computed([column(function, kind)], rows(1, 2))
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_number_is_not_nothing(acme: Distributions, tmp_path: Path) -> None:
    held = pa.table({"a": pa.array([1, 2], pa.int64()), "b": pa.array([None, float("nan")], pa.float64())})
    write_deltalake(tmp_path / "t", held)
    side = SilverSide()
    assert side.otherwise(Silver(str(tmp_path / "t"), 0, ()), [column("no_number", "double")]) == {"b": 1}
    side.close()


def test_functions_of_one_distribution_have_one_version_in_a_process(acme: Distributions) -> None:
    """Its modules are those that were loaded first: a version from after an upgrade isn't theirs."""
    assert installed("reused").version == "1.0"
    (info,) = acme.folder.glob("*.dist-info")
    info = info.rename(acme.folder / "acme-faults-1.1.dist-info")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-faults\nVersion: 1.1\n")
    Distributions.look_again()
    assert installed("reused").version == "1.0"
    late = ComputedColumn("b", "bigint", function="large", columns=("a",))
    assert "acme-faults 1.0 is loaded here, and 1.1 is installed by now: start this process anew" in late.lacks


def test_a_version_that_says_nothing_of_the_code_is_refused(acme: Distributions) -> None:
    """An editable installation keeps the version of its day, whatever its files and its pyproject.toml say since."""
    (info,) = acme.folder.glob("*.dist-info")
    url = info / "direct_url.json"
    url.write_text(json.dumps({"url": "file:///src/acme", "dir_info": {"editable": True}}))
    with pytest.raises(ValueError, match=r"acme-faults 1\.0 is an editable installation.*without --editable"):
        installed("reused")
    url.write_text(json.dumps({"url": "file:///src/acme", "dir_info": {}}))
    assert installed("reused").version == "1.0"
    url.unlink()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-faults\n")
    Distributions.forget("acme_faults")
    with pytest.raises(ValueError, match="acme-faults has no version"):
        installed("reused")
