"""The store of a folder, by the place that it lies in.

In:  a local path or a URL; options of an object store.
Out: a LogStore: LocalStore, or ObjectStore.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.delta.stores.store import LocalStore, LogStore


def log_store(place: str, options: Mapping[str, str]) -> LogStore:
    """The store of a folder: an absolute local path (also file://), or an s3://, gs:// or abfss://
    URL.

    options: with delta-rs's names (tidegate/lake/storage/storage_options.py). The environment adds
    what they don't have.
    """
    if "://" not in place or place.startswith("file://"):
        return LocalStore(place.removeprefix("file://"))
    from tidegate.delta.stores.object_store import ObjectStore  # its client is heavy, and a disk needs none

    return ObjectStore(place, options)
