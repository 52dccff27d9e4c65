"""pyarrow imports no pandas for tidegate, and knows it as soon as other code imports it.

In:  programs in processes of their own.
Out: what they have imported, and what pyarrow makes of a Series.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAMS = {
    "alone": """
from tidegate.lake.files import LakeFiles
import pyarrow as pa
pa.Table.from_pylist([{"a": 1}])
assert "pandas" not in sys.modules
""",
    "pandas later": """
from tidegate.lake.files import LakeFiles
import pyarrow as pa
assert pa.array([1]).to_pylist() == [1]
import pandas as pd
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
""",
    "asked of pyarrow": """
from tidegate.lake.files import LakeFiles
import pyarrow as pa
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
import pandas as pd
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
""",
    "pandas before": """
import pandas as pd
from tidegate.lake.files import LakeFiles
import pyarrow as pa
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert not [finder for finder in sys.meta_path if type(finder).__module__ == "tidegate.lone_arrow"]
""",
    "other threads": """
import threading
from tidegate.lake.files import LakeFiles
def use():
    import pandas as pd
    import pyarrow as pa
    assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
    done.append(1)
done = []
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(done) == 8
""",
}


@pytest.mark.parametrize("case", _PROGRAMS)
def test_pandas_comes_only_if_somebody_imports_it(case: str) -> None:
    program = f"import sys\n{_PROGRAMS[case]}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
