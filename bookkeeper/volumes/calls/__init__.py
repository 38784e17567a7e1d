"""What a bookie asks of its volumes.

writes        what is written to a ledger
reads         what is read of a ledger
all_volumes   what concerns all ledgers
suspects      ledgers of which entries may be missing
"""
