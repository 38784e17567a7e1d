"""What servers on top of BookKeeper share: who may ask, and how many may connect.

tokens, server_tls          who may ask: tokens; certificates, and which of them are revoked
access_control, authentication
                            the rules of a port and its files while they change; who sends a request
caller, allowed_names, permissions, gateway_policy
                            what he may do: by his credential, by the cluster's policy
long_requests               requests that last end when a credential or a right is gone
token_commands              the verbs of ``bk gateway`` for the file of tokens
gateway_audit               what a gateway notes in its audit log
gateway_process             a gateway as a process: settings, signals, its end
config, command_options     what an operator may set, and the options of verbs for it
connection_limits, listener how many may connect and how long they may take; the port that counts them
"""
