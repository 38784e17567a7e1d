"""Providers of authentication, for clients and for bookies.

The configuration names the provider, and no other place is searched: ``none``, ``tls`` (the certificate of the TLS
handshake), or ``MODULE:ATTRIBUTE`` for one of your own.

Read in this order
    config           the table ``[auth]``: which provider, with which options
    provider         the interface of a provider of your own
    provider_loader  loads a provider by its name
    certificate      what a certificate says about its owner

Nothing is imported here: most processes need ``config`` only.
"""
