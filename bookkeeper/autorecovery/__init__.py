"""AUTORECOVERY: finds what is under-replicated and repairs it, without being asked.

::

    from bookkeeper import BookKeeper
    from bookkeeper.autorecovery import AutorecoveryConfig, AutorecoveryService

    async with BookKeeper.connect(uri) as bk:
        service = AutorecoveryService(bk, "my-host", AutorecoveryConfig(bytes_per_s=50_000_000))
        await service.start()

``bk autorecovery`` runs it as a process, ``bk bookie --autorecovery`` inside a bookie; ``bk standalone`` and
``embedded:`` have it by default. Nodes, formats and locks are Apache BookKeeper's.

Read in this order
    config          the settings
    lost_bookies    which lost bookies' ledgers are marked, and when (pure)
    auditor         the shell around it: election, marks, the check of all ledgers
    repair_queue    which marked ledger is next; pauses and reasons (pure)
    worker          the shell around it; the repair itself is bookkeeper.replication's
    wakeup          wakes these loops: by watches, and by the clock
    report          what a process says of itself
    marked, status, cluster_status
                    the list of marks, what autorecovery does, and how the cluster is, for people
    apache_names    its numbers under Apache's names
    service         all of it in one process, and the count of what tenants and owners have; ``process`` is that
                    process, ``inside`` is it within another one
"""

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.report import AutorecoveryReport, StuckRepair
from bookkeeper.autorecovery.service import AutorecoveryService

__all__ = ["AutorecoveryConfig", "AutorecoveryReport", "AutorecoveryService", "StuckRepair"]
