"""The right to act as owner for a bounded time, kept in the metadata store.

lease             take, renew, hold, release, and why two never hold it at once
process_location  where the holder runs, so that a dead one is known to be dead
"""
