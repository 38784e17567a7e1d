"""Reading entries from a bookie's disk: runs that are at hand (``cached_reads``), and all others (``entry_reader``)."""
