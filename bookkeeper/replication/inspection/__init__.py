"""What is where: bookies are asked what they hold, and nothing is changed.

check            whether a ledger is whole
explain          what is where, and what further failures would lose (pure)
explain_ledger   the same of a ledger, asked of its bookies
safe_to_stop     which bookies may be stopped
usage            what tenants and owners of ledgers have
"""
