"""L-CAT for PyTorch Geometric and GraphGym: layers that learn whether to convolve or attend."""
