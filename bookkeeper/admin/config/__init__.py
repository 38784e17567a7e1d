"""``bk config``: what a bookie would be started with, checked and shown; Apache's settings, translated.

config               the verbs
effective_settings   every setting with its value and its source (pure)
apache_settings      translates the settings of an Apache bookie, or refuses them by name (pure)
apache_names         those that mean nothing here, and why
apache_properties, toml_text
                     the codecs of both kinds of files
"""
