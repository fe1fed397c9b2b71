"""resolve: to be described."""
