"""What an operator tells a running bookie.

bookie_control       commands by the socket in its directory
bookie_commands      what each of them does
ledger_directories   its ledger directories: look, add, empty, give up
read_only_order      the order to be read-only, which is given from afar
"""
