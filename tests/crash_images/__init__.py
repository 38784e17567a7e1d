"""What a crash at any moment leaves of a bookie's disk, while ledgers are deleted, brought back, collected, compacted
and repaired in a whole cluster. (The disk alone: tests/bookkeeper/storage/test_crashes.py.)

traced      a simulated disk that writes down what was done to it, and when the metadata changed
undelete    the life of a bookie whose ledgers are deleted and brought back
repair      the life of a bookie that takes the place of one that is gone
__main__    ``make crash-images N=…``: so many images of all lives
"""
