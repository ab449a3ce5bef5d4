"""How attention is computed: graph layout, torch reference, fused C for the CPU."""
