"""A gateway that is killed, again and again, under a running query.

    python -m tests.kills 100 [--seed S] [--masters local[2],local[4]] [--store hdfs|rocksdb] [--manager FileSystem|...]
    python -m tests.kills 50 --pair [--home DIR]

Bookies are processes, metadata lie in SQLite; the gateway is a process that is killed (SIGKILL) at moments drawn from
a seeded rng and started again at once, at the same port. With ``--pair`` there are two; the active one is killed, and
started again as the one that stands by when the query has gone on. One driver runs a stateful query all the while.
What is asked

* no query dies but by an upload that the kill itself cut: that the client had begun and the gateway not answered.
  The gateway's own record tells (``bk gateway webhdfs --upload-log``), and the query's error must be one of an upload
  to such a place. It is started again, and goes on.
* none dies of a temporary file that was acknowledged and is gone.
* every row that the sink was ever given is right, and no batch is missing.
* how long the gateway is away: for a prober that asks for a status all the time, and for the query (until the sink
  gets its next batch).

Moments are random, never waited for: the rng is the only one that sleeps.
"""
