"""Tables, tests and plots from the files that runs write. Imports neither torch nor GraphGym."""
