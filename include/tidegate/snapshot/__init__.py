"""Snapshots without locks: a table's rows are read in chunks while its log is followed (DBLog's watermarks).

In:  a source's tables, keys and SELECTs between two watermarks; apply's answers in
     control/snapshots.
Out: bronze/chunks, events in control/snapshots, marks in `tidegate.watermark` at the source.

**The rule: a chunk counts as a transaction rewriting its rows at its low watermark.** Its rows are
upserts with commit_ts L, the low watermark's in the log. A change of a key above L is later in that
order and wins; one at or below L loses. Therefore it needs no lock, no tombstones, and no set of changed
keys.

Why it is exact. A chunk is read by statements with views between the low watermark L and the high
one H. Every transaction at or below L is visible to them: the update that wrote L had returned
before they began, and the server commits in the order of its log, but for XA COMMITs, and these are
awaited (marks.py). Apply takes the chunk in the window (a, b] with a < H <= b, and the table's
changes again from L on: (L, b]. For a key k of the chunk:
1. The log changes k in (L, b]. The last such change is a whole row or a delete, so k at b is that
   change: it wins by its commit_ts, whatever the chunk saw.
2. It doesn't. Then no change of k lies in (L, H], so what was read is k at every moment from L to
   H, and without one in (H, b] also at b: the chunk's row is right. A key missing in the chunk was
   deleted or moved after L, and the log has it, or didn't exist at L.

Applying (L, a] again changes nothing: a keyed table's changes are whole rows, and the last per key
of (L, a] is what silver has. No table is therefore pinned while it is read. A chunk is landed
before its high watermark is written, so the window that finds H finds the chunk. A DDL of the table
in (L, H], or another server, refuses the wave; it is read anew.

It must hold for a table: a key without NULLs, whole row images in the log. A table without such a
key is read whole from one view, whose place in the log is known exactly (view_reading.py): it
begins there, and its log after the place is applied to exactly the view's rows.
"""
