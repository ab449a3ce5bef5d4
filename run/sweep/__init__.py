"""Grid → runs → engine → state."""
