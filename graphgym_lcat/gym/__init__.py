"""GraphGym's registries: configuration, layers, network, loader, scheduler, training loop."""
