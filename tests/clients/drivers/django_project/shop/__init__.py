"""An application with what applications use most."""
