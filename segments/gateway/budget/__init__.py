"""How many bytes of requests the gateway of streams holds.

call_budget     the limits, in total and for each address
call_bytes      what one call holds
caller_address  from which network a call comes
"""
