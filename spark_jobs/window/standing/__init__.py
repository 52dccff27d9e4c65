"""Where an application's tables stand: who asks the rules, and who writes down what they say.

In:  what happened to a table.
Out: standings, recorded (standings.py); tables held for what their versions, names or writers say.
"""
