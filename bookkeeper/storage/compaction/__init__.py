"""Compaction of entry logs: what lives in a log is copied into another one, and the log is removed.

schedule           the machine: which kind of run is due, which log is next, how fast, how long; suspended or not
log_use            what lives in every log, by the ledgers that are in it
chunk              the records of a piece of a log, by ledger, and which of them live
log_copy           reads the source and writes the target; blocks
compaction_steps   the shell: copies, has the places moved, has a checkpoint remove the source
compactor          the front: runs when they are due or asked for, the report

The order is the guarantee: the copies are durable, then a checkpoint writes the new places and leaves the source out of
its manifest, and only then is the source unlinked. After a crash the old manifest names the source, or the new one
names the copies. A compacted log is an entry log like any other.

Where something is wrong with a log, it is left as it is: a damaged record is never dropped, and neither is one of a
living ledger that the index does not know.
"""
