"""Failures of storage, sorted by what the caller may conclude.

Determinate     it did not happen: retry it, or report it
Indeterminate   it may have happened: resolve it by the commit token, then answer
Fatal           the same, and no later sync can be trusted: the process stops and recovers
Fenced          another epoch took over: everybody gets 57P01 and the process exits
"""


class StorageError(Exception):
    """What went wrong in storage. The text may name paths: it is for logs, never for clients."""


class Determinate(StorageError):
    """The operation did not happen."""


class RequireFailed(Determinate):
    """A precondition of a stash transaction did not hold; nothing was written."""


class AlreadyExists(Determinate):
    """An object of that name exists; nothing was overwritten."""


class NotFound(Determinate):
    """There is no object of that name."""


class NewerFormat(Determinate):
    """The data was written by a newer Meridian; nothing was changed."""


class Locked(Determinate):
    """Another process serves this data."""


class Corrupt(Determinate):
    """Stored bytes are not what was written."""


class ForeignWriter(Determinate):
    """Somebody else wrote into a table's Delta log; it is fenced, nothing was overwritten."""


class Indeterminate(StorageError):
    """The operation may have happened."""


class Fatal(Indeterminate):
    """A sync failed: what the disk holds is unknown until it is read again. The process must stop.

    The kernel may have marked the lost pages clean, so that a second sync would lie.
    """


class Fenced(StorageError):
    """A newer epoch owns the stash; this process may write nothing any more."""
