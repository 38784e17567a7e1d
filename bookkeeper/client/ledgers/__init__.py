"""One ledger's metadata from its creation to its deletion.

ledger_creation    what was asked for is checked, an ensemble chosen, the ledger entered into metadata
ledger_recovery    the shell around ``ledger.recovery``: closing someone else's ledger
ledger_deletion    deleting a ledger, whose writer is stopped first
"""
