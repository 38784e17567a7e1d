"""``bk bookies``: the bookies of a cluster, from afar.

clusters       the group; ``list``; ``bk init``
operations     ``info``, ``drain``, ``forget``; ``bk ledger entries``
decommission   ``decommission``
read_only      ``read-only``

``safe-to-stop`` is in :mod:`bookkeeper.admin.ledger.answers`. Nothing is imported here: ``bk`` loads the verb that it
runs, and no other.
"""
