"""Side by side with Apache BookKeeper: ``make bench-apache``, or ``python -m benchmarks apache``.

Three clusters of three bookies each, on one disk and one ZooKeeper: ours, Apache's as shipped, Apache's tuned for
latency. Each is measured with its own client, and Java's client also on our bookies and ours on Java's. Runs take
turns (ours, shipped, tuned, ours, …), so that whatever else the machine does meets all of them; medians count.

Read in this order
    rows        what is measured, and what the ratios should be
    plan        the order of all runs, and what they will take
    clusters    three bookies of either kind: started, killed, weighed
    surroundings
                slower syncs, a longer way, encryption: the same for both kinds of bookie
    drivers     the two load generators: long-lived children that obey one-line JSON commands
    load        ours; ``Load.java`` is its twin on Apache's client
    runner      performs the plan, keeps results, goes on where it was interrupted
    summary     medians, ratios, verdicts
    charts      pictures, as SVG
    document    the section of docs/benchmarks.md
    command     the command line
"""
