"""Where an application's tables stand: the rules are asked here, and their answers recorded.

In:  events of a table.
Out: standings, recorded (standings.py); tables held because of their versions, names or writers.
"""
