"""``bk bookies``: the bookies of a cluster, from afar.

bookies        the group; ``list``
operations     ``info``, ``drain``, ``forget``
decommission   ``decommission``

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
