"""An erasure as a person orders it: recorded under the person's name, with a certificate.

In:  a desk, an order, the addresses of sources.
Out: rows of control/actions, in which the condition is a hash; a certificate. No value of the
     condition is in any of them, in a line, or in an error: their readers may not know the person.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from tidegate.actions.desk import Desk
from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.model import leaves, literals_of
from tidegate.erase.erasure import Erasure, Order
from tidegate.errors import LakeUnavailable, TidegateError, UsageError, unexpected
from tidegate.limits import MESSAGE_CHARACTERS_MAX
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.tables.actions_table import Act

_HIDDEN: Final = "..."
_DRY: Final = "dry run, nothing is erased: "


@dataclass(frozen=True, slots=True)
class Done:
    """lines: one a table. proof: with it the order's hash is the SHA-256 of proof, table and condition, a blank between
    each. certificate: JSON; empty of a dry run.
    """

    lines: tuple[str, ...]
    proof: str
    order: str
    certificate: dict[str, Any]


def carry_out(
    desk: Desk, order: Order, info: Callable[[str], ConnectionInfo], report: Callable[[str], None], *, dry_run: bool
) -> Done:
    """Raises as Erasure.run, and AlreadyDone; each without a value of the condition."""
    # The condition names the person. control/actions has only a hash of it, and a comparison needs the proof.
    proof, begun = secrets.token_hex(16), datetime.now(UTC)
    subject = hashlib.sha256(f"{proof} {order.table} {order.where}".encode()).hexdigest()
    with desk.recorded(Act.ERASE, (order.table,), subject) as result:
        erasure = Erasure(desk.pipeline, desk.lake, info, order, lambda line: report(without_values(line, order.where)))
        try:
            order.condition  # noqa: B018 - one that can't be read is refused before a line is said
            done = erasure.plan() if dry_run else erasure.run()
        except TidegateError as error:
            raise _hidden(error, order.where) from None
        except OSError as error:  # of the lake's files; a source's have their class already
            raise _hidden(_unreached(error), order.where) from None
        except Exception as error:  # noqa: BLE001 - its text may quote a value
            raise _hidden(unexpected(error), order.where) from None
        if not any(each.keys for each in done):
            what = "no row in the lake is one of these: was the condition meant so?"
            report(f"{order.table}: {what}")
        lines = tuple(each.planned if dry_run else each.line for each in done)
        result.line = (_DRY if dry_run else "") + "\n".join(lines)
    certificate = {
        "pipeline": desk.name,
        "order": subject,
        "by": desk.author.user,
        "in": desk.author.place,
        "begun": f"{begun:%Y-%m-%dT%H:%M:%SZ}",
        "ended": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "tables": [each.places.certified for each in done],
    }
    return Done(lines, proof, subject, {} if dry_run else certificate)


def without_values(text: str, where: str) -> str:
    """A text without the condition's values, and without the condition."""
    for value in sorted({where, *_values(where)}, key=len, reverse=True):
        for form in (value, repr(value)[1:-1], value.replace("'", "''")):
            text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", _HIDDEN, text) if form.strip() else text
    return text


def _values(where: str) -> Iterator[str]:
    for leaf in leaves(read_condition(where)):
        for literal in literals_of(leaf):
            yield literal if isinstance(literal, str) else f"{literal:f}"


def _unreached(error: OSError) -> LakeUnavailable:
    """The error of a lake that doesn't answer: the next run goes on with what is left."""
    line = " ".join(str(error).split())[:MESSAGE_CHARACTERS_MAX]
    return LakeUnavailable(
        f"a file of the lake can't be read or written: {line}",
        remedy="check the lake's disk or store, then run it again: what is erased stays so",
    )


def _hidden(error: TidegateError, where: str) -> TidegateError:
    """The same without values. A condition that can't be read is hidden as a whole."""
    try:
        what = without_values(error.what, where)
    except ValueError as odd:
        places = re.search(r"at character \d+", str(odd))
        what = f"the condition isn't understood{f' {places[0]}' if places else ''}"
        return UsageError(what, remedy="look at --where")
    remedy = without_values(error.remedy, where) if isinstance(error.remedy, str) else error.remedy
    return type(error)(what, where=error.where, remedy=remedy)
