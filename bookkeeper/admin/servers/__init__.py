"""Servers for one machine, for trying things out and for development; and the files of credentials that servers read.

servers      ``bk zookeeper``, ``bk standalone``
console      ``bk console``: pages for a browser
credentials  ``bk credentials``: tokens, signing keys, users of SASL
free_port    looks whether a port is free
standalone   the processes of ``bk standalone``: bookies, gateway, autorecovery, console
standalone_plan  what it is to run

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
