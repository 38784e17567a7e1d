"""What a cluster that heals itself costs, and how long it takes: ``python -m benchmarks healing [ROW...]``.

Read in this order
    heal        a cluster in ZooKeeper, bookies of one kind, and autorecovery of the same kind beside them
    load        what is written, and appends that are timed while something else goes on
    rows        the figures: repair beside Apache's, a set rate, appends beside a repair, a compaction, a scrub and
                checkpoints, requests of an audit, space under deletes

Where Apache's programs cannot run, the rows that compare with them say so and are left out.
"""
