"""SUBSCRIBE over the wire: what real clients are told, and how it ends."""
