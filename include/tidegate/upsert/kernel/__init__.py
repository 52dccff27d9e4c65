"""Compiled kernels of the positional upsert: hashes of keys, the table of a window's keys, deletion vectors.

In:  addresses of Arrow buffers and numpy arrays that the caller keeps alive. Out: counts and filled arrays.
As in binlog/kernel: callers check bounds, errors are numbers here and sentences outside, sources are in the digest
that names numba's cache.
"""
