"""The command line, the configuration, session variables, `meridian check`."""
