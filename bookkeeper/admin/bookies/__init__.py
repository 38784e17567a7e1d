"""``bk bookies``: the bookies of a cluster, from afar.

bookies        the group; ``list``
operations     ``info``, ``drain``, ``forget``
decommission   ``decommission``
read_only      ``read-only``
safe_to_stop   ``safe-to-stop``

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
