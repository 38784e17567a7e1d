"""Bookies that leave the cluster.

drain          moves every ledger off some bookies
forget         removes the cookies of bookies that no ledger names
decommission   drains, waits until everything is whole, forgets
deleted_copies copies of deleted ledgers that can still be brought back: no drain moves them
"""

from bookkeeper.replication.decommissioning.decommission import DecommissionProgress, DecommissionReport, decommission
from bookkeeper.replication.decommissioning.deleted_copies import in_words
from bookkeeper.replication.decommissioning.drain import StuckLedger, drain
from bookkeeper.replication.decommissioning.forget import forget

__all__ = ["DecommissionProgress", "DecommissionReport", "StuckLedger", "decommission", "drain", "forget", "in_words"]
