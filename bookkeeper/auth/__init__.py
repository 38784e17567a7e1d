"""Providers of authentication, for clients and for bookies.

The configuration names the provider, and no other place is searched: ``none``, ``tls`` (the certificate of the TLS
handshake), ``token`` (signed tokens), ``sasl`` (DIGEST-MD5, for Java), or ``MODULE:ATTRIBUTE`` for one of your own.

Read in this order
    config           the table ``[auth]``: which provider, with which options
    provider         the interface of a provider of your own
    provider_loader  loads a provider by its name
    certificate      what a certificate says about its owner
    client_trust     whether a certificate that was good still is; revocations reads its lists
    token_file       the file of signing keys, which gateways read, too
    signed_tokens    what a token says, and whether it is good
    token_provider   the provider ``token``
    provider_options what the built-in providers have in common
    sasl             the provider ``sasl``

Nothing is imported here: most processes need ``config`` only.
"""
