"""Journals on replicated ledgers: ``bk:NAME``, one ledger per segment, one entry per batch.

The journal's node (:class:`journal_manager.journals.chain.Chain`) lies beside the cluster's own metadata, under
``<root>-py/journals/NAME``; every step of a writer is one compare-and-set of it.

* A ledger is in the node before its first entry is written.
* The next ledger is made after the last one was closed, by its writer or by recovery.
* Claim, then recovery: the compare-and-set stops a former owner from extending the chain, fencing of the open
  ledger stops its appends.
* What leaves the node, or never got into it, is deleted afterwards; a crash leaves at most ledgers that
  carry the journal's name in their custom metadata.

Who may change the node, and what was left behind, is shared with other chains of ledgers: ``bookkeeper.chains``.

Read in this order: ``error_translation``, ``journal_node``, ``journal_owner``, ``ledgers``, ``reader``,
``snapshot_index``, ``snapshots``, ``writer``, ``orphans``, ``backend``, which also elects, by a lease beside the node.
``address`` has the names, ``node_size`` says how full a journal's node is, ``shared_client`` one client for all at an
address.
"""

from journal_manager.backends.bookkeeper.backend import BookKeeperBackend, BookKeeperOptions

__all__ = ["BookKeeperBackend", "BookKeeperOptions"]
