"""For operators: the command ``bk``.

Read in this order
    cli         the command itself: a table of its verbs; others by the entry-point group ``bookkeeper.commands``
    options     what several verbs share: ``--metadata``, ``--json``, running a coroutine
    ledgers     bk ledger append|read|tail|show|list|entries|recover|delete
    clusters    bk init, bk bookies
    operations  bk bookies info|drain, bk ledger entries
    servers     bk bookie, bk zookeeper, bk standalone
    bench       bk bench add|read
    java        finding a Java runtime;  zookeeper  a development ZooKeeper from PySpark's jars

A verb of another package (the gateway's) joins through that group: nothing here imports upwards.
"""
