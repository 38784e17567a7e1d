"""Reading a ledger: what applications hold, and the shells around ``ledger.read``.

read_handle     reading and tailing, as applications see it
entry_source    reads runs of entries from bookies, and checks them
single_reads    reads the single entries of one turn as ``ledger.read.read_plan`` combines them
lac_follower    knows how far the ledger may be read, by requests, long polls and metadata
poll_ahead      which long polls are under way: the next one is sent before it is needed
quiet_ledgers   waits for news of many ledgers in which little happens
opened_entries  entries as they are stored, or decrypted
poll_pauses     how long a reader waits between two long polls
"""
