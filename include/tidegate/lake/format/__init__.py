"""The lake's format: the shape of control tables, release by release.

In:  a control table as an older release left it.
Out: its rows as this release has them; the table itself, upgraded in one commit; LakeRefused for a
     newer lake.

migrations.py: the changes, by number. layout.py: the differences of a table from tables/.
version.py: the format of a lake, and its refusals. unfinished.py: the paper of a folder that only
looks like a lake. lake/control/lake_upgrade.py upgrades all tables of a lake. To change a control
table:

- A new nullable column: add it in tables/, and a line of migrations.py without `convert`. Readers
  have null for it, and the next append writes the new schema in its own commit.
- Any other change: write a pure function, pa.Table -> pa.Table, in a file here, and give its line
  of migrations.py `convert` and `old`. If a release added nullable columns after the table's first
  one, name them in `later`: some lakes lack them.

docs/inside/extend.md has the steps, with the tests to run.

Why a kill anywhere does no harm: a table's layout stands in its own log. Its upgrade is one commit,
found or made by the next writer. control/format only tells older releases to keep out. It is
written before the first table is upgraded.
"""
