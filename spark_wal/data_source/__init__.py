"""Streams, ledgers and journals as data of Spark: ``format("bookkeeper")``, in Python, without a jar.

PySpark finds :mod:`pyspark_bookkeeper`, which imports this room with the first call.

source        which reader or writer the options ask for
sink          writes batches into a stream, exactly once
tables        reads what there is now: streams, a ledger
name_pattern  what to say where a pattern of names matches no stream
journal_rows  the same of a journal
stream_source reads a stream, batch after batch
hold_keeper   keeps what a query has not committed from being removed
stream_plan   where a batch ends, and how it is cut into partitions
partition_reader  reads one partition of a stream, whole or not at all
rows          a query's rows as records
columns       records as the columns that Spark asks for
values        values that are JSON or Arrow, as a user's own columns
connections   one connection for each process
worker_heap   excludes what a process of Spark has loaded from garbage collection
options       the options of a user
offsets       positions of a query in its checkpoint
"""
