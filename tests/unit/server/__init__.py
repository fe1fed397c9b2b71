"""Parts of `coordinator/server` without a socket."""
