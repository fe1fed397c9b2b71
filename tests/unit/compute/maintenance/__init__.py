"""Maintenance programs: derived from views' queries, and run over changes of their inputs."""
