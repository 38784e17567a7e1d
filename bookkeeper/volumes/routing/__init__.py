"""To which volumes a call about one ledger goes.

routes         the volume that has a ledger, and the choice of one for a ledger that is new
ledger_moves   ledgers that are being moved to another volume: adds go to both
"""
