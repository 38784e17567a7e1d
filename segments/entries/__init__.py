"""The entries of a stream's ledgers.

layout        header, kinds, sizes
columns       records as columns
entry         columns to bytes
stored_entry  bytes to records
sections      where the columns lie
compression   lz4 and zstd
lone_entries  entries of one record that follow each other, read as one thing
arrow         an entry's records as Arrow columns
footer        statistics of a completed segment
"""
