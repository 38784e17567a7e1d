"""Servers for one machine, for trying things out and for development; and the files of credentials that servers read.

servers      ``bk zookeeper``, ``bk standalone``
credentials  ``bk credentials``: tokens, signing keys, users of SASL
standalone   the processes of ``bk standalone``: bookies, gateway, autorecovery

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
