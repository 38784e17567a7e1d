"""Permissions on this bookie: the owners of its ledgers, kept on its disk, and the access policy, evaluated once for
each connection and ledger.

owner_map            which ledger has which owner, in memory
owner_log            writes the file of owners: many new ledgers share one sync
operation            the operation of a request, and sets of operations as bits
ledger_permissions   decides; reads the metadata if the owner is not known yet
"""
