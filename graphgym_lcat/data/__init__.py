"""Datasets, splits, noise and synthetic graphs."""
