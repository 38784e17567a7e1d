"""What must hold in a simulated cluster, watched from outside the code that has to keep it.

monitor          at every step
deletions        a part of it: where ledgers are deleted and brought back
volume_monitor   a part of it: where bookies have several ledger directories
history          what clients lived through, and whether a correct store could have given it to them
"""
