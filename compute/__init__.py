"""Engines: run a plan over pinned inputs. Knows no sessions and chooses no timestamps."""
