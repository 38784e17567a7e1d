"""Ledgers that were deleted, and the space they free: a pure proof, and the passes that look for it."""
