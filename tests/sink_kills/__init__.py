"""Drivers that are killed while they publish batches, and what came of it in the stream.

    python -m tests.sink_kills 200 [--home DIR] [--seed S]

A driver is a process without a JVM: it plans a batch into a log, runs the sink's tasks, commits, and writes the commit
log, as Spark does. It kills itself at a moment that was drawn; a third of the time that is between the publication and
the commit log. The next driver runs the batch again, with other rows. With --home a trial goes on where it was stopped.
"""
