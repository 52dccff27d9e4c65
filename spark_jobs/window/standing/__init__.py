"""The standings of an application's tables: this room asks the rules, and records their answers.

In:  events of a table.
Out: standings, recorded (standings.py); tables held because of their versions, names or writers.
"""
