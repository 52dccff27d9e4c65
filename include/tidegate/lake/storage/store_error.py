"""Errors of an object store. Readers of files tell them from damaged bytes by their class.

In:  nothing; this is an error.
Out: StoreError. Its text has the file's address, so words in the text prove nothing about the
     file's bytes.
"""

from __future__ import annotations


class StoreError(OSError):
    """A store didn't answer, or refused a request. It may pass: no file is damaged by it."""


class StoreDeniedError(StoreError, PermissionError):
    """... for lack of rights. It may pass, too: keys expire, and are renewed."""


class StoreNameError(StoreError):
    """An object beside those of the lake has a name that the store's client can't list, such as `a//b`."""
