"""Servers for one machine, for trying things out and for development.

servers      ``bk zookeeper``, ``bk standalone``
standalone   the processes of ``bk standalone``: bookies, gateway, autorecovery

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
