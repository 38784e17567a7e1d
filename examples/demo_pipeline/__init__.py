"""Flights as a stream, counted by Spark, written to a second stream: exactly once, whatever is killed in between.

feeder    a program that owns the first stream and appends the flights to it
driver    the query: plain PySpark, from stream to stream
story     the cluster, and what is done to it
totals    what the second stream says, and whether it says it once
verdict   the same result in batch, compared
view      the live picture
"""
