"""Our streams beside what else keeps a log durable: ``make bench-streams``, or ``python -m benchmarks rivals``.

Kafka, NATS JetStream and DistributedLog's core (on our bookies), each with three copies, each with its own client, each
synced before it acknowledges. Systems take turns, round after round; medians count. What cannot be had on a machine (no
Java, Maven or Go, no network the first time) is left out, and said so.

Read in this order
    table       the rows, the goals, and the page's section
    servers     three brokers of Kafka, three servers of NATS: configured, started, killed
    drivers     the load generators: built or compiled into the cache, long-lived children that obey JSON commands
    load        ours; ``Rival.java`` and ``nats/main.go`` are its twins
    command     the rounds
"""
