"""Who uses a simulated cluster, and who looks after it.

actors            writers, recoverers, tailing readers, repairers, healers
undeleter         deletes ledgers and brings them back, with some of them in time
litter            ledgers that come and go on a bookie's disk, so that there is something to compact
volume_operator   looks after the ledger directories of bookies that have several
"""
