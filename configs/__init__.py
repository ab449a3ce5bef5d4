"""Base configurations of the experiments, as YAML files."""
