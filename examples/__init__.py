"""Programs that stand on the packages of this repository."""
