"""What Spark did to a copy of a table's log comes back as what it would have done to the log itself."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.merge.private.copy import PrivateCopy, java_quoted, java_uri
from spark_jobs.merge.private.folders import PrivateFolders, made_at, new_name
from tidegate.delta.table.actions import clustering, domain, metadata, protocol
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import DeltaUnsupported, LakeRefused
from tidegate.limits import JOB_HANGS_SECONDS
from tidegate.upsert.deletions import z85

NAME = "tg-0199aabbccdd00112233445566778899"
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


def vector(number: int, offset: int = 1, prefix: str = "") -> dict[str, Any]:
    code = z85.encode(uuid.UUID(int=number).bytes)
    return {"storageType": "u", "pathOrInlineDv": prefix + code, "offset": offset, "sizeInBytes": 34, "cardinality": 1}


def file(path: str, dead: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    body = {"path": path, "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True, **more}
    return body | ({"deletionVector": dead} if dead else {})


def table(*files: dict[str, Any], version: int = 7, **configuration: str) -> TableState:
    told = {name.replace("_", "."): value for name, value in configuration.items()}
    found = TableState("t").after(
        0, [protocol(["deletionVectors", "clustering", "domainMetadata"]), metadata(SCHEMA, told)]
    )
    for number in range(1, version):
        found = found.after(number, [])
    return found.after(version, [clustering(["id"]), *({"add": one} for one in files)])


def copy(state: TableState, root: str = "/lake/t") -> PrivateCopy:
    return PrivateCopy(state, root, NAME)


def borrowed(made: PrivateCopy, path: str) -> dict[str, Any]:
    """The `add` in the copy of the file that the table's log calls so."""
    (found,) = [one["add"] for one in made.first if "add" in one and one["add"]["path"].endswith(path)]
    return dict(found)


def gone(body: dict[str, Any], **more: Any) -> Action:
    return {"remove": {k: body[k] for k in ("path", "deletionVector") if k in body} | {"dataChange": True, **more}}


def after(state: TableState, actions: list[Action]) -> TableState:
    return state.after(state.version + 1, actions)


def test_a_copy_names_files_and_their_vectors_by_where_they_lie() -> None:
    state = table(file("a%20b.parquet", vector(5)), file(f"{NAME[:-1]}0/c.parquet", vector(6, prefix="tg-x")))
    made = copy(state, "s3a://bucket/la ke/t")
    first = borrowed(made, "b.parquet")
    assert first["path"] == "s3a://bucket/la%20ke/t/a%20b.parquet"
    assert first["deletionVector"] == {
        "storageType": "p",
        "pathOrInlineDv": f"s3a://bucket/la%20ke/t/deletion_vector_{uuid.UUID(int=5)}.bin",
        "offset": 1, "sizeInBytes": 34, "cardinality": 1,
    }  # fmt: skip
    assert borrowed(made, "c.parquet")["deletionVector"]["pathOrInlineDv"] == (
        f"s3a://bucket/la%20ke/t/tg-x/deletion_vector_{uuid.UUID(int=6)}.bin"
    )
    kept = TableState("t").after(0, made.first)
    assert (kept.table_id, kept.schema, kept.domains, kept.protocol) == (
        state.table_id, state.schema, state.domains, state.protocol,
    )  # fmt: skip


def test_new_files_and_vectors_get_the_folder_in_front_and_the_tables_own_get_their_names_back() -> None:
    state = table(file("a.parquet", vector(5), stats="{}"), file("b.parquet"), file("c.parquet", vector(6)))
    made = copy(state)
    a, b, c = (borrowed(made, f"{name}.parquet") for name in "abc")
    inline = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    actions = made.translated([
        [gone(a), {"add": {**a, "deletionVector": vector(9)}}, gone(b), {"add": {**b, "deletionVector": inline}}],
        [
            {"add": file("part-0.parquet", vector(10, prefix="ab"))},
            {"add": {**c, "tags": {"ZCUBE_ID": "1"}, "dataChange": False}},
        ],
    ])  # fmt: skip
    assert made.files(actions) == {
        f"{NAME}/deletion_vector_{uuid.UUID(int=9)}.bin",
        f"{NAME}/ab/deletion_vector_{uuid.UUID(int=10)}.bin",
        f"{NAME}/part-0.parquet",
    }
    live = after(state, actions).live
    assert {path: one.action.get("deletionVector") for (path, _), one in live.items()} == {
        "a.parquet": vector(9, prefix=NAME),
        "b.parquet": inline,
        "c.parquet": vector(6),
        f"{NAME}/part-0.parquet": vector(10, prefix=f"{NAME}/ab"),
    }
    assert len(live) == 4
    (same,) = [one for one in live.values() if one.path == "c.parquet"]
    assert same.action["tags"] == {"ZCUBE_ID": "1"}
    assert all(body["dataChange"] for one in actions for kind, body in one.items() if kind in ("add", "remove"))


def test_moved_rows_are_no_change_of_data() -> None:
    state = table(file("a.parquet"), file("b.parquet", vector(5)))
    made = copy(state)
    a, b = borrowed(made, "a.parquet"), borrowed(made, "b.parquet")
    actions = made.translated([[
        gone(a, dataChange=False), gone(b, dataChange=False),
        {"add": file("p.parquet", tags={"ZCUBE_ID": "x"}, clusteringProvider="liquid", dataChange=False)},
    ]])  # fmt: skip
    assert not any(body["dataChange"] for one in actions for kind, body in one.items() if kind in ("add", "remove"))
    (only,) = after(state, actions).files
    assert only.action == file(
        f"{NAME}/p.parquet", tags={"ZCUBE_ID": "x"}, clusteringProvider="liquid", dataChange=False
    )


def test_what_came_and_went_meanwhile_is_in_no_commit() -> None:
    state = table(file("a.parquet"))
    made = copy(state)
    a, p = borrowed(made, "a.parquet"), file("p.parquet")
    assert made.translated([[gone(a), {"add": p}], [gone(p), {"add": a}]]) == []
    assert made.translated([]) == []


def test_only_what_changed_of_properties_schema_and_domains_is_carried() -> None:
    state = table(
        delta_checkpointInterval="50",
        delta_enableInCommitTimestamps="true",
        delta_autoOptimize="true",
        mine="1",
        gone="1",
    )
    made = copy(state)
    inside = TableState("t").after(0, made.first)
    assert inside.configuration == {"delta.checkpointInterval": "1000000", "mine": "1", "gone": "1"}
    schema = {"type": "struct", "fields": []}
    told = {**inside.configuration, "mine": "2", "delta.feature": "x"}
    del told["gone"]
    changed = {"metaData": {**inside.metadata, "schemaString": json.dumps(schema), "configuration": told}}
    actions = made.translated(
        [[changed, domain("delta.clustering", "{}", removed=True)], [domain("delta.other", "{1}")]]
    )
    found = after(state, actions)
    assert found.schema == schema
    assert found.table_id == state.table_id
    assert found.configuration == {
        "delta.checkpointInterval": "50", "delta.enableInCommitTimestamps": "true", "delta.autoOptimize": "true",
        "mine": "2", "delta.feature": "x",
    }  # fmt: skip
    assert found.domains == {"delta.other": "{1}"}
    assert {kind for one in actions for kind in one} == {"metaData", "domainMetadata"}


def test_row_ids_of_new_files_say_the_version_that_they_come_with() -> None:
    state = table(file("a.parquet", baseRowId=0, defaultRowCommitVersion=5), version=8)
    made = copy(state)
    a = borrowed(made, "a.parquet")
    actions = made.translated([[
        gone(a), {"add": {**a, "deletionVector": vector(9)}},
        {"add": file("p.parquet", baseRowId=10, defaultRowCommitVersion=1)},
    ]])  # fmt: skip
    adds = {one["add"]["path"]: one["add"]["defaultRowCommitVersion"] for one in actions if "add" in one}
    assert adds == {"a.parquet": 5, f"{NAME}/p.parquet": 9}


def test_change_data_of_one_statement_is_carried_and_of_two_is_refused() -> None:
    made = copy(table(file("a.parquet")))
    a = borrowed(made, "a.parquet")
    told = {"cdc": {"path": "_change_data/cdc-0.parquet", "partitionValues": {}, "size": 1, "dataChange": False}}
    actions = made.translated([[gone(a), {"add": file("p.parquet")}, told]])
    assert [one["cdc"]["path"] for one in actions if "cdc" in one] == [f"{NAME}/_change_data/cdc-0.parquet"]
    with pytest.raises(DeltaUnsupported, match="two statements"):
        made.translated([[gone(a), {"add": file("p.parquet")}, told], [{"add": file("q.parquet")}]])


@pytest.mark.parametrize(
    "odd",
    [
        {"add": file("file:/elsewhere/x.parquet")},
        {"add": file("../x.parquet")},
        {"add": file("/x.parquet")},
        {"add": file("x.parquet", {**vector(1), "storageType": "p", "pathOrInlineDv": "file:/elsewhere/v.bin"})},
        {"txn": {"appId": "someone's", "version": 1}},
        {"sidecar": {"path": "x"}},
        metadata(SCHEMA, {}),
    ],
)
def test_what_is_not_the_copys_is_refused(odd: Action) -> None:
    with pytest.raises(LakeRefused):
        copy(table(file("a.parquet"))).translated([[odd]])


def test_folders_say_when_they_were_made_and_are_hidden_from_nobody() -> None:
    name = new_name()
    assert name[0] not in "._"
    assert made_at(name) is not None
    assert made_at("tg-0199aabbccdd00112233445566778899") == pytest.approx(0x0199AABBCCDD / 1000)
    assert made_at("tg-orders") is None
    assert made_at(name + "x") is None


def test_a_folder_is_used_by_one_at_a_time_and_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    folders, first, second = PrivateFolders(), new_name(), new_name()
    assert folders.take("t") is None
    folders.give("t", first)
    folders.give("t", second)
    assert folders.take("other") is None
    assert {folders.take("t"), folders.take("t")} == {first, second}
    assert folders.take("t") is None
    folders.give("t", first)
    later = time.time() + JOB_HANGS_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    assert folders.take("t") is None


def test_uris_are_written_as_java_writes_them() -> None:
    assert java_uri("/la ke/ü+a=b%20/x") == "file:/la%20ke/ü+a=b%2520/x"
    assert java_uri("abfss://box@account.dfs.core.windows.net/a b") == "abfss://box@account.dfs.core.windows.net/a%20b"
    assert (
        java_quoted('a\u00a0\u2003\x85#?[]"<>^`{}|\\')
        == "a%C2%A0%E2%80%83%C2%85%23%3F%5B%5D%22%3C%3E%5E%60%7B%7D%7C%5C"
    )


@given(st.data())
def test_any_changes_of_a_copy_leave_the_table_as_they_would_have_left_it(data: st.DataObject) -> None:
    state = table(*(file(f"{n}.parquet", vector(n) if data.draw(st.booleans()) else None) for n in range(4)))
    made = copy(state)
    # What lives, by what it is called in the copy -> what it must be called in the table.
    names = {one["add"]["path"]: one["add"]["path"].rsplit("/", 1)[-1] for one in made.first if "add" in one}
    inside = TableState("t").after(0, made.first)
    commits: list[list[Action]] = []
    for number in range(data.draw(st.integers(0, 3))):
        commit: list[Action] = []
        for body in [dict(one.action) for one in inside.files]:
            what = data.draw(st.sampled_from(["keep", "drop", "kill"]))
            if what != "keep":
                commit.append(gone(body))
            if what == "kill":
                commit.append({"add": {**body, "deletionVector": vector(100 + len(commits) * 20 + len(commit))}})
        if data.draw(st.booleans()):
            commit.append({"add": file(f"new-{number}.parquet")})
            names[f"new-{number}.parquet"] = f"{NAME}/new-{number}.parquet"
        commits.append(commit)
        inside = inside.after(len(commits), commit)
    expected = {(names[one.path], _vector_in_table(state, names, one.action)) for one in inside.files}
    found = after(state, made.translated(commits))
    assert {(one.path, json.dumps(one.action.get("deletionVector"))) for one in found.files} == expected


def _vector_in_table(state: TableState, names: dict[str, str], action: Any) -> str:
    dead = action.get("deletionVector")
    if dead is None or dead["storageType"] == "u":
        return json.dumps(dead and {**dead, "pathOrInlineDv": NAME + dead["pathOrInlineDv"]})
    (own,) = [one for one in state.files if one.path == names[action["path"]]]
    return json.dumps(own.action["deletionVector"])
