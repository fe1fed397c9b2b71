"""Quick imports: the modules of a server are imported without work that its start does not need.

    with quick_imports():
        from coordinator.server.serve import serve

Four things cost more than reading the modules:

- pyarrow imports pandas, where it is installed, when it first makes an array, and clients of cloud
  storage with its file systems. The server uses neither. pyarrow still imports pandas when it is
  asked for it (`to_pandas`).
- A dataclass compiles up to six methods, one `exec` each. There are hundreds of dataclasses, and a
  start makes objects of few. Here each method is compiled when it is first called, and then takes
  the place of its stub: it costs no more than any other method.
- numpy starts a thread for each further core, for algebra that the server has none of.
- The collector of cycles looks again and again at objects that stay.

INVARIANTS
  Q1  Only what is imported within the block is changed: afterwards `dataclasses` and the
      environment are as before.
  Q2  A method that was compiled late is the one that `dataclasses` would have made.

Stubs are made through a function of the standard library that is private. If a later Python has it
no longer, imports are what they always were, and `tests/unit/server/test_quick_imports.py` fails.

Rejected: a decorator of our own instead of `dataclass`. 600 classes would change, readers and type
checkers would have to learn it, and it would have to do the same.
"""

import dataclasses
import gc
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, TypeAlias

_Method: TypeAlias = Callable[..., Any]

_MAKER: Final = "_create_fn"
"""What compiles a method of a dataclass in Python 3.11 and 3.12."""


_UNUSED: Final = frozenset(
    {"pandas", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs"}
)
"""What pyarrow imports if it is there, and does without if not."""


_ALGEBRA: Final = "OPENBLAS_NUM_THREADS"
"""The threads of numpy's linear algebra, which it reads when it is imported."""


@contextmanager
def quick_imports() -> Generator[None]:
    """Within the block, imports are quick."""
    maker: _Method | None = getattr(dataclasses, _MAKER, None)
    # What importing makes stays: nobody need look for garbage in it again and again.
    gc.disable()
    finder = _WithoutUnused()
    sys.meta_path.insert(0, finder)
    said = os.environ.get(_ALGEBRA)
    os.environ.setdefault(_ALGEBRA, "1")
    try:
        if maker is not None:
            setattr(dataclasses, _MAKER, _late(maker))
        yield
        if "pyarrow" in sys.modules:
            # It looks for pandas once, when it makes its first array.
            import pyarrow as pa

            pa.array(())
    finally:
        sys.meta_path.remove(finder)
        if said is None:
            del os.environ[_ALGEBRA]
        if maker is not None:
            setattr(dataclasses, _MAKER, maker)
        # What is there now is not garbage: no look at it has to find that out.
        gc.freeze()
        gc.enable()


class _WithoutUnused:
    """A finder of modules that does not find what nobody uses."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        del path, target
        if fullname in _UNUSED:
            raise ModuleNotFoundError("not used here", name=fullname)
        return None


def _late(maker: _Method) -> _Method:
    """The maker of methods, but what it returns compiles the method when it is first called."""

    def make(name: str, *arguments: Any, **options: Any) -> _Method:
        made: _Method | None = None

        def stub(self: object, /, *given: Any, **named: Any) -> Any:
            nonlocal made
            method = maker(name, *arguments, **options) if made is None else made
            made = method
            method.__qualname__ = stub.__qualname__
            # With slots there are two classes, of which only the second has objects.
            for kind in type(self).__mro__:
                if kind.__dict__.get(name) is stub:
                    setattr(kind, name, method)
            return method(self, *given, **named)

        stub.__name__ = name
        return stub

    return make
