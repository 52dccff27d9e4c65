"""The steps of the apply job, one per file: each takes an Application and a Window and fills in the window for those
after it. A step never imports another one.
"""
