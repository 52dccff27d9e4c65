"""Why a table couldn't be written: the cause passes by itself, or it lies in the table.

In:  an error of Spark, py4j or the disk.
Out: TablesFailed, all failures of one try together; whether a failure passes by itself; its message in one line.

A table must never be held because an executor was lost, the JVM's heap was full, or the store throttled requests. Such
a window is tried again, by this application or the next one. If the same table fails in each try while the lake can be
written, the cause lies in the table.
"""

from __future__ import annotations

import errno
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidegate.errors import TidegateError, Transient
from tidegate.lake.files import LakeFiles

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
# Python raises these at unforeseen values. The same rows raise them in each try.
OWN_FAULTS: Final = (ArithmeticError, AssertionError, UnicodeError)
# By class or a class above it: the JVM's, the network's, or another writer's trouble.
_PASSING: Final = {
    "java.lang.VirtualMachineError",
    "java.lang.InterruptedException",
    "java.util.concurrent.TimeoutException",
    "java.util.ConcurrentModificationException",
    "java.io.InterruptedIOException",
    "java.net.SocketException",
    "java.net.UnknownHostException",
    "java.nio.channels.ClosedChannelException",
    "javax.net.ssl.SSLException",
}
_PASSING_WORDS: Final = re.compile(
    r"ExecutorLostFailure|SparkContext was (?:shut down|stopped)|stopped SparkContext|cancelled because SparkContext"
    r"|No space left on device|Disk quota exceeded|Too many open files|Java heap space|GC overhead limit"
)
# The last line of a worker's traceback, if bronze or staging couldn't be reached.
_WORKERS_IO: Final = re.compile(
    r"(?m)^(?:[\w.]*\.)?(?:OSError|ConnectionError|Connection\w+Error|TimeoutError|BrokenPipeError|MemoryError"
    r"|StoreError|StoreDeniedError|StoreNameError|LakeUnavailable)\b"
)
_CAUSES_MAX: Final = 20


class TableWriteError(Exception):
    """Spark or Delta failed on one table: name, and the first line of what it said."""

    def __init__(self, name: str, error: BaseException) -> None:
        self.table = name
        self.line = first_line(error)
        super().__init__(f"{name}: {self.line}")


class TablesFailed(Exception):  # noqa: N818 - says what happened
    """Every table that failed in one try, with what it met."""

    def __init__(self, failures: Mapping[str, BaseException]) -> None:
        self.failures = dict(failures)
        super().__init__("; ".join(f"{name}: {first_line(error)}" for name, error in self.failures.items()))


def raise_failures(failures: Mapping[str, BaseException]) -> None:
    """Raise TablesFailed if there are any. KeyboardInterrupt and its like are raised as they are: the process is to
    end.
    """
    for error in failures.values():
        if not isinstance(error, Exception):
            raise error
    if failures:
        raise TablesFailed(failures)


def first_line(error: BaseException) -> str:
    """An error's message, in one line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # Py4J's first line only names the call. Java's message comes after it.
    return next((line.lstrip(": ") for line in lines if line.startswith(": ")), lines[0])


def passes(error: BaseException, lake: LakeFiles) -> bool:
    """Whether a failure passes by itself. If its class doesn't tell, the lake is tried: if it can't be written, the
    failure passes.
    """
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, Transient | MemoryError | Py4JNetworkError | ConnectionError):
        return True
    if isinstance(error, TidegateError):
        return False
    if _PASSING_WORDS.search(str(error)) or (isinstance(error, OSError) and error.errno in _FULL):
        return True
    try:
        classes = list(java_classes(error))
    except Py4JNetworkError:
        return True
    if any(name in _PASSING for above in classes for name in above):
        return True
    reads_or_writes = (
        isinstance(error, OSError)
        or any("java.io.IOException" in above for above in classes)
        or _WORKERS_IO.search(str(error)) is not None
    )
    return reads_or_writes and not _works(lake)


def java_classes(error: BaseException) -> Iterator[list[str]]:
    """Names of the class of each cause in Java, and of those above it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    cause: Any = None
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
    elif isinstance(error, CapturedException):
        cause = error._origin  # noqa: SLF001 - there is no other way to what Java said
    for _ in range(_CAUSES_MAX):
        if cause is None:
            return
        names, kind = [], cause.getClass()
        while kind is not None:
            names.append(str(kind.getName()))
            kind = kind.getSuperclass()
        yield names
        cause = cause.getCause()


def _works(lake: LakeFiles) -> bool:
    """Whether the lake can be written and read at this moment."""
    path = f"staging/probe-{uuid.uuid4().hex}"
    try:
        lake.make_folder("staging")
        lake.write(path, [b"1"])
        lake.filesystem.delete_file(lake.local(path))
    except (OSError, TidegateError):
        return False
    return True
