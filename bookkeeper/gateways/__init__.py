"""What servers on top of BookKeeper share: who may answer, who may ask, and how many may connect.

lease, process_location     the right to answer for a bounded time, with an epoch; which processes have ended
tokens, server_tls          who may ask: tokens; certificates, and which of them are revoked
access_control, authentication
                            the rules of a port and its files while they change; who sends a request
config, command_options     what an operator may set, and the options of verbs for it
connection_limits, listener how many may connect and how long they may take; the port that counts them
"""
