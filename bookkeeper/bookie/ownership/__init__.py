"""Who may do what on this bookie: the owners of its ledgers, kept on its disk, and the policy, asked once for each
connection and ledger.

owner_map            which ledger has which owner, in memory
owner_log            writes the file: many new ledgers share one sync
operation            what a request wants to do with which ledger, and bits for sets of such operations
ledger_permissions   decides; reads the metadata where the owner is not known yet
"""
