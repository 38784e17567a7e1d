"""The table of system-call faults: every call of a bookie's disk fails in every way, and what comes of it. Whatever
fails, nothing that was acknowledged is lost, and nothing is acknowledged that is not durable.

table       the cells, and what is allowed to come of each
simulated   every cell on a simulated disk: in CI
real        a part of them in a real process, by a library that is loaded before the system's: ``make fault-table``
__main__    ``make fault-table``: the table goes into docs/faultlog.md
"""
