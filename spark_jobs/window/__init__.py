"""What a window is and knows: the application, the window and its tables, whom apply follows, what is held.

Nothing here writes a row of silver.
"""
