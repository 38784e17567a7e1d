"""Reads entries from a bookie's disk: runs in memory (``cached_reads``), and all others (``entry_reader``)."""
