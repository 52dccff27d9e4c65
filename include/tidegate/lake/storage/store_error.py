"""An object store's own trouble with a file, told from damage of the file's bytes by its class.

In:  nothing; this is an error.
Out: StoreError, for readers of files. Its text has the file's address, so words in it say nothing of its bytes.
"""

from __future__ import annotations


class StoreError(OSError):
    """A store didn't answer, or refused a request. It may pass: no file is damaged by it."""


class StoreDeniedError(StoreError, PermissionError):
    """... for want of rights: keys expire, and are renewed."""


class StoreNameError(StoreError):
    """An object beside those of the lake has a name that the store's client can't list, as `a//b`."""
