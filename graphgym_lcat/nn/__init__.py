"""The layers, as plain PyG modules: no GraphGym, no global configuration, no files."""
