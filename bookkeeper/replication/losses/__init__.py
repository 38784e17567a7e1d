"""What cannot be brought back, given up by an operator's order.

accept_loss   closes a ledger whose ordinary recovery is inconclusive
closing_loss  what of it is lost then (pure)
rollback      goes on from metadata that were put back: what bookies hold that the metadata do not know
"""
