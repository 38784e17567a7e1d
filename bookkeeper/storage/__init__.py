"""A bookie's disk: journal, entry logs, index. :class:`~bookkeeper.storage.engine.Engine` is the one door.

Read in this order
    engine          what is promised, and how work is handed to the disk's threads
    config, shapes  what can be set; what the engine hands out
    journal_format, durable  the bytes of the journal; how files come to be and are replaced
    journal, group_commit, inline_sync, write_behind
                    how groups become durable
    entry_log, entry_index, index_segment, reading
                    where an entry is
    manifest, checkpoint, housekeeping, log_book
                    what is covered by what, and what may go
    start, salvage  from a directory to a disk that serves

Nothing is imported here: a configuration needs ``config`` only.
"""
