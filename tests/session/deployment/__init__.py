"""The files of `deploy/`: right by their schemas, and their commands serve."""
