"""Several coordinators on one stash and one warehouse, as real processes."""
