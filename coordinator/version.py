"""The version of Meridian; the package's metadata take it from here.

Metadata could be asked for it, but reading them takes longer than most of a server's start.
"""

from typing import Final

PRODUCT_VERSION: Final = "0.1.0"
