"""The pipeline file: what a key may hold."""

from __future__ import annotations

import pytest

from tidegate.config import parse
from tidegate.errors import ConfigError

PUMP_OF = "{{conn_id: c, flavour: tidb, listen: ['unix:/x'], status_url: '{}'}}"
BASE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['a.*']}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "null"), ("apply: {zero_dates: null}", "null"), ("apply: {zero_dates: error}", "error")],
)
def test_zero_dates_are_null_unless_the_file_says_error(text: str, found: str) -> None:
    assert parse(BASE + text, where="p.yaml").apply.zero_dates == found


def test_another_word_for_zero_dates_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:5: apply\.zero_dates: is 'keep', and must be 'null' or 'error'"):
        parse(BASE + "apply: {zero_dates: keep}", where="p.yaml")


@pytest.mark.parametrize(
    ("text", "asks"),
    [("", False), ("xa: {orphans: park}", False), ("xa: {orphans: ask}", True), ("ddl: {drop_table: ask}", True)],
)
def test_a_pipeline_asks_a_person_where_its_file_says_so(text: str, asks: bool) -> None:
    assert parse(BASE + text, where="p.yaml").asks is asks


@pytest.mark.parametrize(
    ("table", "follows"),
    [
        ("_orders_gho", True),
        ("_orders_new", True),
        ("__orders_new", True),  # pt-online-schema-change: the first name was taken
        ("__orders_gho", False),
        ("_orders_ghc", False),
        ("_orders_del", False),
        ("_orders_old", False),
        ("_other_gho", False),
        ("orders_new", False),
        ("_secret_new", False),
        ("_out_new", False),
    ],
)
def test_the_shadow_of_a_kept_table_is_known_by_its_name(table: str, follows: bool) -> None:
    names = "include: ['shop.orders', 'shop.secret', 'shop.out'], exclude: ['shop.secret', 'shop._out_new']"
    text = f"pipeline: p\nlake: {{path: /x}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\ntables: {{{names}}}\n"
    found = parse(text, where="p.yaml").tables
    assert found.shadows("shop", table) is follows
    assert not found.shadows("other", table)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("flavour: mysql", "flavor: mariadb"), "p.yaml:3: sources.s.flavor: unknown key; did you mean flavour?"),
        (("flavour: mysql", "flavour: maria"), "'maria', and must be 'mysql' or 'mariadb'; of TiDB 'tidb' or 'ticdc'"),
        (("['a.*']", "a.*"), "p.yaml:4: tables.include: must be a list, in brackets: [a, b]; correct this value"),
        (("['a.*']", "[]"), "tables.include: must not be empty"),
        (("['a.*']", "[shop]"), "tables.include: pattern 'shop' must be database.table (all of a database: 'shop.*')"),
        (("pipeline: p", "pipeline: my shop"), "pipeline: 'my shop' must be a letter, then letters, digits and _"),
        (("lake: {path: x}\n", ""), "lake: is missing; add this key"),
        (("lake: {path: x}", "lake: lakes/x"), "p.yaml:2: lake: must be a mapping: {key: value}"),
        (("include", "inclde"), "tables.inclde: unknown key; did you mean include?"),
        (
            ("tables:", "ddl: {modify_column: ask}\ntables:"),
            "ddl.modify_column: unknown key; did you mean change_type?",
        ),
        (("tables:", "ddl: {hide_column: ask}\ntables:"), "ddl.hide_column: unknown key; known keys here: add_column"),
        (("tables:", "ddl: {dropt_column: ask}\ntables:"), "ddl.dropt_column: unknown key; did you mean drop_column?"),
        # Nobody may believe that a column is masked when it isn't: no key for it is passed over.
        (("['a.*']", "['a.*'], masks: {email: hmac}"), "tables.masks: must be a list"),
        (("['a.*']", "['a.*'], columns: {exclude: [email]}"), "tables.columns: must be a list"),
        (("tables:", "masks: {email: 'null'}\ntables:"), "masks: unknown key; known keys here: pipeline"),
        (("tables:", "columns: {exclude: [email]}\ntables:"), "columns: unknown key; known keys here: pipeline"),
        (
            ("['a.*']", "['a.*'], routes: [{match: a.b, too: c.d}]"),
            "tables.routes.0.too: unknown key; did you mean to?",
        ),
        (("['a.*']", "['a.*'], routes: [{match: a.b, to: c}]"), "tables.routes.0.to: must be database.table, each"),
        (
            ("['a.*']", "['a.*'], computed: [{match: a.b, name: c, type: int, sql: '1'}]"),
            "tables.computed.0.sql: unknown key; known keys here: match, name, type, expression",
        ),
        (("tables:", "alerts: {notifiers: {a: {class: b.C}}}\ntables:"), "known keys here: notifier, arguments"),
        (("tables:", "apply: {driver_memory: 2GB}\ntables:"), "apply.driver_memory: must be a whole number and m or g"),
        (
            ("{conn_id: c, flavour: mysql}", PUMP_OF.format("tidb:10080")),
            "sources.s.status_url: must be http://host:port",
        ),
    ],
)
def test_a_mistake_is_said_in_the_words_of_who_writes_the_file(change: tuple[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(BASE.replace(*change), where="p.yaml")
    assert told in str(refused.value)
    assert "more)" not in str(refused.value)


def test_a_login_in_the_address_of_tidbs_status_port_is_refused_and_not_repeated() -> None:
    text = BASE.replace("{conn_id: c, flavour: mysql}", PUMP_OF.format("http://me:s3cret@tidb:10080"))
    with pytest.raises(ConfigError, match=r"status_url: must be http://host:port .*, without a login") as refused:
        parse(text, where="p.yaml")
    assert "s3cret" not in str(refused.value)
    parse(text.replace("me:s3cret@", ""), where="p.yaml")


def test_all_mistakes_are_said_at_once_each_with_its_line() -> None:
    text = BASE + "apply:\n  mode: micro\n  parallel_tables: 0\ncaptur: {}\n"
    with pytest.raises(ConfigError) as refused:
        parse(text, where="p.yaml")
    assert str(refused.value) == (
        "p.yaml:8: captur: unknown key; line 6: apply.mode: is 'micro', and must be 'batch' or 'micro_batch';"
        " line 7: apply.parallel_tables: input must be greater than or equal to 1; did you mean capture?"
        " known keys here: pipeline, lake, sources, tables, capture, apply, ddl, maintain, snapshot, verify, erase,"
        " completeness, xa, alerts"
    )


FEED = "{{flavour: ticdc, path: '{}', protocol: csv, time_zone: UTC}}"
PUMP = "{{flavour: tidb, conn_id: tidb, listen: ['unix:/{}']}}"


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ("{conn_id: c, flavour: mysql}", "{conn_id: c, flavour: mariadb, semi_sync: true}", "conn_id c"),
        (FEED.format("s3://b/feed"), FEED.format("s3://b/feed/"), "path s3://b/feed"),
        ("{conn_id: c, flavour: mysql}", "{conn_id: d, flavour: mysql}", ""),
        (FEED.format("s3://b/feed"), FEED.format("s3://b/feed2"), ""),
        (PUMP.format("a"), PUMP.format("b"), ""),
    ],
)
def test_two_sources_of_one_log_are_refused(one: str, two: str, told: str) -> None:
    text = f"{{pipeline: p, lake: {{path: l}}, sources: {{one: {one}, two: {two}}}, tables: {{include: ['*.*']}}}}"
    if not told:
        parse(text, where="p.yaml")
        return
    with pytest.raises(ConfigError, match=rf"sources one and two have the same {told}: every row would come twice"):
        parse(text, where="p.yaml")


def test_a_tab_is_named_as_what_it_is() -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:\d+: not valid YAML: .*; indent by spaces"):
        parse(BASE + "apply:\n\tmode: batch\n", where="p.yaml")


def test_a_run_is_long_enough_to_prove_that_its_source_is_quiet() -> None:
    found = parse(BASE + "capture: {run_for_seconds: 12, heartbeat_seconds: 3}", where="p.yaml").capture
    assert found.proof_seconds == 12
    with pytest.raises(ConfigError, match=r"4 heartbeats of 3 s; raise run_for_seconds, or lower heartbeat_seconds"):
        parse(BASE + "capture: {run_for_seconds: 11, heartbeat_seconds: 3}", where="p.yaml")


def test_a_run_ends_by_itself_no_sooner_than_it_has_proved_that() -> None:
    capture = parse(BASE + "capture: {idle_seconds: 1, heartbeat_seconds: 0.5}", where="p.yaml").capture
    assert (capture.idle_end_seconds, capture.idle_end(0.1), capture.idle_end(7)) == (2, 2, 7)
