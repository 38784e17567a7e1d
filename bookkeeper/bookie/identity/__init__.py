"""Who this bookie is, and what its disk may have lost.

bookie_identity      the bookie's id, port and cookie: chosen once
disk_identity        what a disk that began empty remembers of that moment
progress_publisher   how far the disk is, told to the metadata store and compared at every start
stale_adds           adds to ledgers that are older than the disk
suspect_ledgers      ledgers in limbo: the loss may concern them, until their copies are verified
completion           what was lost, copied back from the other bookies
"""
