"""Snapshots: the state at a transaction id, so that a replay need not begin at the first edit. All of it is pure.

snapshots     what a snapshot is, and what every store of them does
checkpoints   when a replica takes one
retention     which snapshots and segments may be removed then
"""
