"""The demo: real flights, from COPY to time travel, readable by a new user."""
