"""The lake's format: the shape of control tables, release by release.

In:  a control table as an older release left it.
Out: its rows as this release has them; the table itself, upgraded in one commit; LakeRefused for a
     newer lake.

migrations.py: the changes, by number. layout.py: the differences of a table from tables/.
version.py: the format of a lake, and its refusals. unfinished.py: the paper of a folder that only
looks like a lake. lake/control/lake_upgrade.py upgrades all tables of a lake. To change a control table:

- A nullable column more in tables/, and a line of migrations.py without `convert`: readers have
  null for it, and the next append writes the schema in its own commit.
- Anything else: a file with a pure function, pa.Table -> pa.Table, and its line of migrations.py.
  Nullable columns newer than a release's table stand in the line's `later`: some lakes lack them.

Why a kill anywhere does no harm: a table's layout stands in its own log. Its upgrade is one commit,
found or made by the next writer. control/format says only what releases must keep out, and says it
before the first table.
"""
