"""The steps of the apply job: one per file, the function named like the file. Steps never import steps.

Each takes (Application, Window) and fills in the window for the step after it; apply.py's STEPS is the order.
"""
