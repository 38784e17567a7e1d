"""Apache BookKeeper's HTTP administration API, at an address of its own: same routes, parameters, statuses and JSON.

    request -> routes (which route, what it needs) -> admission (who asks, may he) -> calls -> reply

routes             the table of all routes, and which of them a request means (pure)
request            a request and its parameters (pure)
shapes             ledgers, bookies and settings in Apache's JSON (pure)
admission          tokens, the access policy, and which routes that change something are on
ledger_calls       what is asked of ledgers
bookie_calls       what is asked of the cluster's bookies
local_calls        what is asked of the bookie in this process
autorecovery_calls what is asked of autorecovery; recoveries and decommissions that go on in the background
background         work that goes on after its reply
service            the server: from connections to calls; requests counted by route, method and status
inside             the same inside a bookie
"""
