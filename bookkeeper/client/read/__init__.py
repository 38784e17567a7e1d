"""Reading a ledger: what applications hold, and the shells around ``ledger.reader`` and ``ledger.last_add_confirmed``.

read_handle     reading and tailing, as applications see it
entry_source    runs of entries: asks bookies, checks what they give
single_reads    single entries of one turn, as ``ledger.read_plan`` combines them
lac_follower    how far one may read: asking, long polls, the end of the ledger
poll_pauses     how long a reader waits between two long polls
"""
