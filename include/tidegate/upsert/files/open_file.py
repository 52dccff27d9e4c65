"""Open a live data file of silver. If it can't be read, that is the table's trouble, and not the lake's.

In:  a path under the lake.
Out: a Parquet file, or SilverDamaged.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import LakeUnavailable, SilverDamaged
from tidegate.lake.files import LakeFiles, refused_of
from tidegate.lake.storage.store_error import StoreError
from tidegate.remedy import DAMAGED


def opened(lake: LakeFiles, where: str) -> pq.ParquetFile:
    """Raises SilverDamaged; LakeUnavailable or StoreError where the lake's disk or store doesn't answer."""
    try:
        return pq.ParquetFile(lake.open(where), coerce_int96_timestamp_unit="us", memory_map=False)
    except FileNotFoundError:
        raise SilverDamaged("a data file is gone", where=where, remedy=DAMAGED) from None
    except LakeUnavailable as error:
        raise refused_of(error) from error
    except StoreError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise SilverDamaged(f"a data file can't be read: {error}", where=where, remedy=DAMAGED) from None
