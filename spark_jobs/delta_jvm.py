"""The few classes of Delta's own code that we call by py4j, checked once at start.

In:  a Spark session with Delta's jars.
Out: DeltaClasses, or ConfigError that names the version found and what it lacks.

They are internal to Delta (its public Kernel API checks too little: ARCHITECTURE.md), so every class and method that is
used stands in _USED and is looked for before the first commit, not in the middle of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.errors import ConfigError

_DELTA = "org.apache.spark.sql.delta"
# Class -> method/number of parameters. A trailing $ is a Scala object.
_USED = {
    f"{_DELTA}.DeltaLog": (
        "update/3",
        "unsafeVolatileSnapshot/0",
        "checkpoint/2",
        "startTransaction/2",
        "store/0",
        "newDeltaHadoopConf/0",
        "logPath/0",
    ),
    f"{_DELTA}.DeltaLog$": ("forTable/2",),
    f"{_DELTA}.Snapshot": ("version/0", "metadata/0", "logSegment/0", "stateDF/0", "uncache/0"),
    f"{_DELTA}.LogSegment": ("checkpointProvider/0",),
    f"{_DELTA}.CheckpointProvider": ("version/0",),
    f"{_DELTA}.OptimisticTransaction": (
        "readWholeTable/0",
        "updateMetadataForNewTable/1",
        "updateSetTransaction/3",
        "commit/2",
        "txnId/0",
    ),
    f"{_DELTA}.actions.Action": ("fromJson/1",),
    f"{_DELTA}.actions.Metadata": ("id/0",),
    f"{_DELTA}.DeltaOperations$TestOperation": (),
    f"{_DELTA}.storage.LogStore": ("read/2",),
    f"{_DELTA}.util.FileNames$": ("unsafeDeltaFile/2",),
}
# A method as Java prints it: ... org.apache.Some$Class.name(first.Type,int[]) throws ...
_SIGNATURE = re.compile(r"\.([^.()\s]+)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class DeltaClasses:
    """Handles into the JVM. Usable from any Python thread: each has its own thread there (pinned thread mode)."""

    version: str
    spark: Any  # classic.SparkSession, the class
    log: Any  # DeltaLog, the companion
    none: Any  # scala.None
    some: Any  # scala.Option.apply
    as_scala: Any  # java.util.List -> scala.collection.mutable.Buffer
    array_list: Any
    split: Any  # hadoop's StringUtils.getStringCollection: (text, delimiter) -> java.util.ArrayList
    parse_action: Any  # java.util.function.UnaryOperator: a line of the log -> Action
    operation: Any  # the class of a named operation
    join: Any  # java.lang.String.join
    commit_path: Any  # (path of the log, version) -> path of the commit

    @classmethod
    def of(cls, spark: SparkSession) -> DeltaClasses:
        """Raises ConfigError when this Delta isn't the one that we know."""
        context = spark.sparkContext
        jvm = context._jvm  # noqa: SLF001 - py4j's only door
        if not isinstance(context._gateway, ClientServer):  # noqa: SLF001
            raise ConfigError(
                "Python threads share the JVM's threads, so that tables could get each other's session",
                where="PYSPARK_PIN_THREAD",
                remedy="don't set it to false",
            )
        assert jvm is not None
        version = _version(jvm)
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        found = {name: _checked(jvm, loader, name, methods, version) for name, methods in _USED.items()}
        return cls(
            version=version,
            spark=getattr(jvm, "org.apache.spark.sql.classic.SparkSession"),
            log=_module(jvm, f"{_DELTA}.DeltaLog"),
            none=jvm.scala.Option.empty(),
            some=jvm.scala.Option.apply,
            as_scala=jvm.scala.jdk.javaapi.CollectionConverters.asScala,
            array_list=jvm.java.util.ArrayList,
            split=jvm.org.apache.hadoop.util.StringUtils.getStringCollection,
            parse_action=_parser(jvm, found[f"{_DELTA}.actions.Action"]),
            operation=getattr(jvm, f"{_DELTA}.DeltaOperations$TestOperation"),
            join=jvm.java.lang.String.join,
            commit_path=_module(jvm, f"{_DELTA}.util.FileNames").unsafeDeltaFile,
        )

    @contextmanager
    def active(self, session: Any) -> Iterator[None]:
        """Within, `session` (of the JVM) is what Delta's code takes settings from, in this thread alone."""
        before = self.spark.getActiveSession()
        self.spark.setActiveSession(session)
        try:
            yield
        finally:
            if before.isDefined():
                self.spark.setActiveSession(before.get())
            else:
                self.spark.clearActiveSession()

    def option(self, value: Any) -> Any:
        return self.none if value is None else self.some(value)

    def joined(self, strings: Any) -> str:
        """A java.util.List of strings as one text with a line for each."""
        return str(self.join("\n", strings))

    def seq(self, lines: list[str]) -> Any:
        """scala.Seq of Actions from lines as in the log: one text goes to the JVM, not a call for each line."""
        actions = self.array_list(self.split("\n".join(lines), "\n"))
        actions.replaceAll(self.parse_action)
        return self.as_scala(actions).toSeq()


def _version(jvm: Any) -> str:
    try:
        return str(_module(jvm, "io.delta.package").VERSION())
    except (Py4JError, TypeError) as error:
        raise ConfigError(
            "Delta isn't on Spark's class path", where="Spark", remedy="tidegate up fetches it; or set the jars"
        ) from error


def _module(jvm: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _checked(jvm: Any, loader: Any, name: str, methods: tuple[str, ...], version: str) -> Any:
    try:
        found = jvm.java.lang.Class.forName(name, False, loader)
        has = _methods(jvm, found) if methods else set()
    except Py4JError as error:
        raise _unknown(version, name) from error
    for method in methods:
        if method not in has:
            raise _unknown(version, f"{name}.{method}")
    return found


def _methods(jvm: Any, found: Any) -> set[str]:
    """name/number of parameters of public methods, from one text: to ask for each of a thousand costs 0.5 CPU-s."""
    told = _module(jvm, "scala.collection.immutable.ArraySeq").unsafeWrapArray(found.getMethods()).mkString("\n")
    return {f"{name}/{given.count(',') + 1 if given else 0}" for name, given in _SIGNATURE.findall(str(told))}


def _unknown(version: str, what: str) -> ConfigError:
    return ConfigError(
        f"Delta {version} has no {what}",
        where="Spark",
        remedy="use the Delta version of requirements.txt, or apply.writer: merge",
    )


def _parser(jvm: Any, action: Any) -> Any:
    """Action.fromJson as a java.util.function.UnaryOperator: one call for a list, not one for each line."""
    invoke = jvm.java.lang.invoke
    string = jvm.java.lang.Class.forName("java.lang.String")
    handle = invoke.MethodHandles.publicLookup().findStatic(
        action, "fromJson", invoke.MethodType.methodType(action, string)
    )
    operator = jvm.java.lang.Class.forName("java.util.function.UnaryOperator")
    return invoke.MethodHandleProxies.asInterfaceInstance(operator, handle)
