"""Sweeps: from a grid to its runs, the folder they share, and their states."""
