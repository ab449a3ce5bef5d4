"""What all parts of the project agree on, once each: errors, files, settings, identities, models, the folder of a run.

Importing it is cheap: it needs neither torch nor pandas. It imports no other part of the project.
"""
