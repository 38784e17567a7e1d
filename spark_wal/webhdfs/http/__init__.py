"""WebHDFS over HTTP: the library's server, the operations, their parameters and replies; the OAuth2
token endpoint."""
