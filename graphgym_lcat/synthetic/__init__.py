"""The paper's experiments on synthetic graphs."""
