"""Segments: the value that capture, the lake and the decoders hand to each other, for every kind of
source.

In:  nothing; these are values and arithmetic over them.
Out: Segment (a row of bronze/segments), SegmentRef (the same without its bytes), the windows over
     them, the result of decoding one, its checksum.
"""
