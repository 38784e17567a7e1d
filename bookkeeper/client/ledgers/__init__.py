"""One ledger's metadata from its creation to its deletion.

ledger_creation    checks the options, chooses an ensemble, writes the metadata
ledger_recovery    the shell around ``ledger.recovery``: closes a ledger whose writer is gone
ledger_deletion    stops the writer, then deletes the ledger
"""
