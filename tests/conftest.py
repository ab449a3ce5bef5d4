def pytest_collection_modifyitems(config, items):
    """The campaign runs only when asked for by name: a plain ``-m "not slow"`` must not start it."""
    if "campaign" in (config.option.markexpr or ""):
        return
    campaign = [item for item in items if item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=campaign)
    items[:] = [item for item in items if not item.get_closest_marker("campaign")]
