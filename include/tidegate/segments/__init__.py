"""Segments: the one value that capture, the lake and decoding hand to each other, whatever the source is.

In:  nothing; these are values and arithmetic over them.
Out: Segment (a row of bronze/segments), SegmentRef (the same without its bytes) and the windows chosen over it,
     what decoding one gives, the checksum that goes with it.
"""
