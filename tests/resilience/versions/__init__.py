"""Data directories that earlier versions wrote open, serve, check and go on.

`testdata/versions/` beside this folder has one archive for each version, small, with a tail that a
crash left, and the answers that the version itself gave.
"""
