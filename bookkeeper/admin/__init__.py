"""For operators: the command ``bk``.

Read in this order
    cli         the command itself: a table of its verbs; others by the entry-point group ``bookkeeper.commands``
    shared      what several verbs share: ``--metadata``, ``--json``, running a coroutine, Ctrl-C
    ledger      bk ledger
    bookies     bk bookies: the bookies of a cluster, from afar
    bookie      bk bookie: one bookie on this machine, and its files
    cluster     bk init, bk cluster, bk metadata, bk autorecovery
    servers     bk zookeeper, bk standalone
    console_script  what is installed as ``bk``: it loads the command
    command_group    a group of commands, whose help has a whole sentence of each
    extras      which optional part of the distribution brings a missing package

Verbs of other packages, like the gateway's, come through that group, so nothing here imports upwards.
"""
