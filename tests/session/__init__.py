"""Sessions: variables, configuration, the protocol's commands, real servers in process."""
