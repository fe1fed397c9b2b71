"""Single messages, limits of time, interrupts, and COPY, over real sockets."""
