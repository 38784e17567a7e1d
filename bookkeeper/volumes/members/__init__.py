"""Changes which volumes serve, and works on all that do.

members               one is added, fails, is given up, is drained; the bookie's state follows
dropped_ledgers       all of them remember every ledger that was dropped
volume_housekeeping   the scrubs and compactions of all of them, as one
pressure              callers pause while any of them has too much to write
"""
