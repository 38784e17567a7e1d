"""Who this bookie is, and what its disk may have lost.

bookie_identity      the bookie's id, port and cookie: chosen once
disk_identity        which ledgers existed when the disk began empty
progress_publisher   publishes how far the disk is; every start compares its disk with that
stale_adds           ledgers in doubt, and adds to ledgers that are older than the disk
ledger_keys          checks the first request of a ledger, where clients are told apart
limbo_ledgers        narrows limbo to the ledgers that a loss may concern, and ends it
seen_metadata        how far the metadata were when this bookie last saw them
checked_note         the bookie's notes, each with a checksum
completion           copies what was lost back from the other bookies
suspect_repairs      has that done for suspect ledgers, whoever found the damage
owner_file           the file ``owners``: which ledger has which owner
undone_start         undoes a first start that failed
state_files          the names of these files, and whether each can be read
"""
