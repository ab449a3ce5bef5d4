"""Grids of the experiments, as YAML files."""
