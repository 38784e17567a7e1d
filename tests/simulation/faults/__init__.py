"""What goes wrong in a simulated cluster.

nemesis         one method for each kind of fault; each is mended after a while
volume_faults   the same for single ledger directories
damage          what becomes of a bookie's files while it is down: rot, loss, older copies
"""
