"""SQL text to typed, bound plans to engine SQL. Pure: no sockets, clocks, Spark or Delta."""
