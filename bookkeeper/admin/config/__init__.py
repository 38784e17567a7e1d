"""``bk config``: what a bookie would be started with, checked and shown; Apache's settings, translated."""
