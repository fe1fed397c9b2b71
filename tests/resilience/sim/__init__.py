"""The seeded simulation: production core and driver on virtual time over faulty twins."""
