"""The figures of docs/benchmarks.md, measured anew: ``make bench`` or ``python -m benchmarks [ROW ...]``.

Nothing here is asserted: a benchmark prints what it saw beside what was hoped for. Absolute numbers move
with the machine, so every run prints a calibration (synced write, loopback round trip, a bare add, CRC,
memory copy).

    calibration   what this machine can do
    bare_add      the least an add of three copies can take here, whoever implements it
    bare_copies   the least that three durable copies of many bytes can take here
    processes     a cluster of real processes
    ledgers       adds, reads, tails
    ledger_load   adds or reads of one client on any cluster: ``python -m benchmarks.ledger_load``
    gateway       atomic files a second, by the requests Spark sends
    spark         a streaming query on the gateway and on file://, interleaved
    journals      an edit log over bare appends, a take-over, replay of HDFS's edits
    report        the table
    apache        side by side with Apache BookKeeper: a program of its own, ``make bench-apache``
"""
