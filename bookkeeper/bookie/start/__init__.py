"""What a start settles before the bookie serves.

bookie_start    who it is, how often it has started, what its disk may have lost
start_volumes   how it treats its ledger directories: the only one, or several
"""
