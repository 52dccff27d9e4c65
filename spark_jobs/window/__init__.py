"""A window and its knowledge, in rooms: values and the application, above them tables' events.

In:  bronze's segments, control tables, schema histories.
Out: the window's tables and their share of it, standings, waves, paired transactions. No row of
     silver is written here.

From the bottom: window (values); handles, names, positions, histories, and the application, their
holder between windows; shape (columns, moves); standing (the rules are asked, standings recorded);
waves (snapshots) and pairing (prewrites); life (joins, leaves, ends of holds).
"""
