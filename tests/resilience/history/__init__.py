"""Histories: what clients asked for and were told, and judges that need nothing else."""
