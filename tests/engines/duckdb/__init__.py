"""The local engine: what it reads, what it refuses to touch, how it streams and stops."""
