"""For operators: the command ``bk``.

Read in this order
    cli         the command itself: a table of its verbs; others by the entry-point group ``bookkeeper.commands``
    options     what several verbs share: ``--metadata``, ``--json``, running a coroutine
    ledgers     bk ledger append|read|tail|show|list|entries|recover|delete;  append, line_input, interruption
    clusters    bk init, bk bookies
    operations  bk bookies info|drain|forget, bk ledger entries
    metadata    bk metadata copy|accept-rollback|audit-acls|show
    servers     bk zookeeper, bk standalone;  standalone runs the processes
    bench       bk bench add|read
    console_script  what is installed as ``bk``: it loads the command
    extras      which optional part of the distribution brings a missing package

Verbs of other packages, like the gateway's, come through that group, so nothing here imports upwards.
"""
