"""MariaDB's own test files, as statements that anybody may send to a server.

In:  Debian's package mariadb-test-data, from the mirror that this machine's apt uses; a seed.
Out: files chosen by the seed, and the SQL statements of each, as bytes: a file may hold any character set.

The files are in mysqltest's language (https://mariadb.com/kb/en/mysqltest/). Its commands are left out: `--word ...` to
the line's end, a known word to the delimiter. What is left runs on one connection, so a file that tests several at once
becomes another script: that is of no harm, since the server itself says what came of it.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.kit import mysql9
from tidegate.errors import DownloadFailed
from tidegate.local.ivy import locked

_PACKAGE: Final = "mariadb-test-data"
_SUITES: Final = (
    *("main", "suite/innodb/t", "suite/innodb_gis/t", "suite/innodb_fts/t", "suite/innodb_zip/t", "suite/gcol/t"),
    *("suite/vcol/t", "suite/versioning/t", "suite/parts/t", "suite/engines/funcs/t", "suite/engines/iuds/t"),
    *("suite/jp/t", "suite/sql_sequence", "suite/period/t", "suite/json/t", "suite/archive", "suite/csv", "suite/heap"),
    *("suite/maria", "suite/compat/oracle/t", "suite/funcs_1/t", "suite/binlog/t", "suite/rpl/t", "suite/federated"),
    *("plugin/type_inet/type_inet", "plugin/type_uuid/type_uuid", "suite/storage_engine", "suite/atomic"),
)
_COMMANDS: Final = frozenset(
    """
    append_file cat_file change_user character_set chmod close connect connection copy_file copy_files_wildcard dec
    delimiter die diff_files dirty_close disable_abort_on_error disable_column_names disable_connect_log
    disable_cursor_protocol disable_info disable_metadata disable_non_blocking_api disable_parsing
    disable_prepare_warnings disable_ps2_protocol disable_ps_protocol disable_query_log disable_reconnect
    disable_result_log disable_service_connection disable_session_track_info disable_testcase disable_view_protocol
    disable_warnings disconnect echo enable_abort_on_error enable_column_names enable_connect_log
    enable_cursor_protocol enable_info enable_metadata enable_non_blocking_api enable_parsing
    enable_prepare_warnings enable_ps2_protocol enable_ps_protocol enable_query_log enable_reconnect
    enable_result_log enable_service_connection enable_session_track_info enable_testcase enable_view_protocol
    enable_warnings end error eval evalp exec exec_in_background execw exit expr file_exists force_cpdir force_rmdir
    horizontal_results if inc let list_files list_files_append_file list_files_write_file lowercase_result mkdir
    move_file output partially_sorted_result perl ping query_get_value query_horizontal query_vertical real_sleep
    reap remove_file remove_files_wildcard replace_column replace_numeric_round replace_regex replace_result require
    reset_connection result_format rmdir save_master_pos send_quit send_shutdown shutdown_server skip sleep
    sorted_result source start_timer sync_slave_with_master sync_with_master system vertical_results
    wait_for_slave_to_stop while write_file
    """.split()  # noqa: SIM905  a list of eighty would fill the page
)
_SENDS: Final = re.compile(rb"^(?:send|query|send_eval)\s+", re.IGNORECASE)
_WORD: Final = re.compile(rb"[a-z_0-9]+", re.IGNORECASE)
_DELIMITER: Final = re.compile(rb"^(?:--)?\s*delimiter\s+(\S+)\s*$", re.IGNORECASE)
_SOURCE: Final = re.compile(rb"^(?:--)?\s*source\s+([^\s;$]+)\s*;?$", re.IGNORECASE)
_DEPTH_MAX: Final = 3
_OPENING: Final = re.compile(rb"^(?:--)?\s*(?:if|while)\s*\(.*\)\s*\{?$", re.IGNORECASE)
# Blocks of another language, or text for a file, up to a line that ends them.
_BLOCK: Final = re.compile(rb"^(?:--)?\s*(perl|write_file|append_file)\b[^;\n]*?(?:\s(\w+))?;?\s*$", re.IGNORECASE)


def install(root: Path) -> Path:
    """Folder of the unpacked files, root/.tidegate/mariadb-test. Raises HostLacks or DownloadFailed."""
    base = root / ".tidegate" / "mariadb-test"
    with locked(root / ".tidegate" / ".mariadb-test.lock"):
        if not (base / "root").exists():
            base.mkdir(parents=True, exist_ok=True)
            environment = mysql9.prepare_apt(base)
            for arguments in (["update"], ["download", _PACKAGE]):
                done = subprocess.run(
                    ["apt-get", "-qq", *arguments],
                    env=environment,
                    cwd=base,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode != 0:
                    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                    raise DownloadFailed(
                        f"apt-get {arguments[0]}: {said[-1]}", where=_PACKAGE, remedy="check the network"
                    )
            mysql9.unpack(sorted(base.glob("*.deb")), base)
    return next((base / "root").glob("usr/share/*/mariadb-test"))


def chosen(folder: Path, seed: int, count: int, words: str = "") -> list[Path]:
    """`count` files by the seed; words: only those whose path matches this expression."""
    found = [path for suite in _SUITES for path in sorted((folder / suite).glob("*.test"))]
    if words:
        found = [path for path in found if re.search(words, str(path.relative_to(folder)))]
    random.Random(seed).shuffle(found)
    return found[:count]


def label(folder: Path, path: Path) -> str:
    """A database's name for a file: suite and file."""
    parts = path.relative_to(folder).with_suffix("").parts
    suite = next((part for part in reversed(parts[:-1]) if part != "t"), "")
    return re.sub(r"\W", "_", f"{suite}_{parts[-1]}".lower())[:48]


def text_of(folder: Path, path: Path, depth: int = 0) -> bytes:
    """A file with the files that it takes in, but for mysqltest's own library."""
    lines = []
    for line in path.read_bytes().splitlines():
        found = _SOURCE.match(line.strip())
        if found is None:
            lines.append(line)
            continue
        name = found[1].decode()
        inner = next((p for p in (folder / name, path.parent / name) if p.is_file()), None)
        if inner is not None and depth < _DEPTH_MAX and inner.parent != folder / "include":
            lines.append(text_of(folder, inner, depth + 1))
    return b"\n".join(lines)


def statements(text: bytes) -> Iterator[bytes]:
    """The SQL statements of a file, without delimiters."""
    delimiter, waiting, ends_block = b";", b"", b""
    for line in text.splitlines():
        stripped = line.strip()
        if ends_block:
            ends_block = b"" if stripped == ends_block else ends_block
            continue
        if not waiting:
            if not stripped or stripped.startswith((b"#", b"}", b"{")):
                continue
            if block := _BLOCK.match(stripped):
                ends_block = block[2] or b"EOF"
                continue
            if found := _DELIMITER.match(stripped):
                delimiter = found[1].removesuffix(delimiter) or found[1]
                continue
            if stripped.startswith(b"--") or _OPENING.match(stripped):
                continue
        waiting += line + b"\n"
        while delimiter in waiting:
            statement, waiting = _cut(waiting, delimiter)
            if statement is None:
                break
            if wanted := _sql(statement):
                yield wanted
            waiting = waiting if waiting.strip() else b""
    if wanted := _sql(waiting):
        yield wanted


def _cut(text: bytes, delimiter: bytes) -> tuple[bytes | None, bytes]:
    """The first statement, and what follows it; None while its delimiter hasn't come: one in quotes is none."""
    quote, at = 0, 0
    while at < len(text):
        byte = text[at]
        if quote:
            if byte == 0x5C and quote != 0x60:
                at += 1
            elif byte == quote:
                quote = 0
        elif byte in b"'\"`":
            quote = byte
        elif byte == 0x23 or text.startswith(b"-- ", at):  # a comment to the line's end
            at = text.find(b"\n", at)
            if at < 0:
                return None, text
        elif text.startswith(delimiter, at):
            return text[:at], text[at + len(delimiter) :]
        at += 1
    return None, text


def _sql(statement: bytes) -> bytes:
    """What a server is to be sent; b"" for a command of mysqltest, and for a statement with variables of it."""
    found = _SENDS.sub(b"", statement.strip())
    while found.startswith((b"#", b"}", b"{")):
        found = found.partition(b"\n")[2].strip()
    word = _WORD.match(found)
    if word is None and not found.startswith((b"(", b"/*")):
        return b""
    if word is not None and word[0].decode().lower() in _COMMANDS:
        return b""
    return b"" if re.search(rb"\$[A-Za-z_]", found) else found
