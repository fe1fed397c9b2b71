"""Short statements, answered without a transaction: as the general way, and only when they may."""
