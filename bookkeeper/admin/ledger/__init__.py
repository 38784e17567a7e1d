"""``bk ledger``: ledgers are written, read, looked at, repaired, recovered and deleted.

ledgers           the group; read, tail, show, list, recover
append            ``append``
copies            ``read --bookie``: the copies that one bookie has
explain           ``explain``
repairs           ``underreplicated``, ``repair``
accept_loss       ``recover --accept-loss``
deletions         ``delete``, ``undelete``, ``list --deleted``
ledger_metadata   ``metadata export|restore``

Nothing is imported here: ``bk`` loads the verb that it runs, and no other.
"""
