"""Reads entries from a bookie's disk.

ledger_reads   what can be asked of a ledger
cached_reads   runs of reads that need not wait for the disk
entry_reader   all other reads
unwritten      records that are not in the file of their entry log yet
entry_places   where entries live: indexes in memory, and the pages of index segments
"""
