"""Segments: the one value that capture, the lake and decoding hand to each other, whatever the source is.

In:  nothing; these are values and arithmetic over them.
Out: Segment (a row of bronze/segments), SegmentRef (the same without its bytes) and the windows
     over it, the result of decoding one, its checksum.
"""
