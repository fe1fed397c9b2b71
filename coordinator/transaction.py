"""A session's transaction: implicit or in a block, healthy or failed, and when it opens and ends.

           BEGIN ┌──────────── COMMIT, ROLLBACK ───────────┐
    I idle ──────┴▶ T in a block ── error ──▶ E failed ────┴──▶ I
      └─ statement ─▶ implicit ── end of the string, Sync ─▶ I

INVARIANTS
  X1  a transaction of the coordinator is begun at the first statement that needs one, never by
      BEGIN: its timestamp is chosen when it first reads.
  X2  every transaction that was begun ends in `commit` or `abort`, once; variables follow it.
  X3  a failed transaction reads and writes nothing more.
  X4  a commit is not interrupted: `committing` is true as long as one is in flight.
"""

from coordinator.coordination import Coordination
from coordinator.core.messages import ConnectionId, Snapshot, TransactionId
from coordinator.pgwire.messages import TransactionStatus
from coordinator.variables import Variables
from sql.catalog import Table
from sql.errors import SqlError
from sql.statements import TransactionControl
from storage.clock import Clock


def failed_transaction() -> SqlError:
    """25P02."""
    return SqlError(
        "25P02",
        "current transaction is aborted, commands ignored until end of transaction block",
    )


def read_only_transaction(command: str) -> SqlError:
    """25006."""
    return SqlError("25006", f"cannot execute {command} in a read-only transaction")


class SessionTransaction:
    """See the module."""

    def __init__(
        self, coordination: Coordination, clock: Clock, owner: ConnectionId, variables: Variables
    ) -> None:
        self._coordination = coordination
        self._clock = clock
        self._owner = owner
        self._variables = variables
        self._id: TransactionId | None = None
        self._snapshot: Snapshot | None = None
        self._in_block = False
        self._failed = False
        self._now = 0
        self.statements = 0
        self.changed_catalog = False
        self.wrote = False
        self.committing = False

    # --- state ----------------------------------------------------------------------------------

    @property
    def status(self) -> TransactionStatus:
        """What ReadyForQuery tells."""
        if not self._in_block:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if self._failed else TransactionStatus.IN_TRANSACTION

    @property
    def in_block(self) -> bool:
        """Between BEGIN and its end."""
        return self._in_block

    @property
    def is_open(self) -> bool:
        """Whether anything would be lost if the session ended now."""
        return self._in_block or self._id is not None or self.committing

    @property
    def failed(self) -> bool:
        """Waiting for ROLLBACK."""
        return self._failed

    @property
    def id(self) -> TransactionId:
        """The coordinator's transaction, begun now if there was none (X1)."""
        if self._id is None:
            assert not self._failed, "X3: a failed transaction does nothing more"
            self._id = self._coordination.begin(self._owner, read_only=self.read_only)
        return self._id

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._variables.flag("transaction_read_only")

    def now(self) -> int:
        """Microseconds: the start of the transaction, one value for all of its statements."""
        if self._now == 0:
            self._now = self._clock.now()
        return self._now

    async def snapshot(self) -> Snapshot:
        """The transaction's timestamp and catalog, its own DDL included."""
        if self._snapshot is None or self.changed_catalog:
            self._snapshot = await self._coordination.snapshot(self.id)
        return self._snapshot

    async def present(self) -> Snapshot:
        """A catalog to describe statements with: chooses no timestamp for the transaction."""
        if self._snapshot is not None:
            return await self.snapshot()
        glance = self._coordination.begin(self._owner, read_only=True)
        try:
            return await self._coordination.snapshot(glance)
        finally:
            self._coordination.abort(glance)

    # --- control --------------------------------------------------------------------------------

    def begin_block(self, control: TransactionControl) -> SqlError | None:
        """BEGIN. Returns a warning if a block was open already."""
        if self._in_block:
            return SqlError("25001", "there is already a transaction in progress")
        self._in_block = True
        self.now()
        self._take_modes(control)
        return None

    def set_modes(self, control: TransactionControl) -> SqlError | None:
        """SET TRANSACTION. Returns a warning outside of a block."""
        if not self._in_block:
            return SqlError("25P01", "SET TRANSACTION can only be used in transaction blocks")
        if self._id is not None and control.isolation is not None:
            raise SqlError(
                "25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            )
        if self._id is not None and control.read_only is False and self.read_only:
            raise SqlError("25001", "transaction read-write mode must be set before any query")
        self._take_modes(control)
        return None

    def _take_modes(self, control: TransactionControl) -> None:
        if control.isolation is not None:
            self._variables.set("transaction_isolation", control.isolation, local=True)
        if control.read_only is not None:
            self._set_flag("transaction_read_only", on=control.read_only)
        elif self._variables.flag("default_transaction_read_only"):
            self._set_flag("transaction_read_only", on=True)
        if control.deferrable is not None:
            self._set_flag("transaction_deferrable", on=control.deferrable)

    def _set_flag(self, name: str, *, on: bool) -> None:
        self._variables.set(name, "on" if on else "off", local=True)

    def check_writable(self, command: str) -> None:
        """Raises 25006 in a read-only transaction."""
        by_default = not self._in_block and self._variables.flag("default_transaction_read_only")
        if self.read_only or by_default:
            raise read_only_transaction(command)

    def fail(self) -> None:
        """A statement failed: the block waits for its end, an implicit transaction is over (X3)."""
        self._drop()
        if self._in_block:
            self._failed = True
        else:
            self._end(committed=False)

    # --- the end --------------------------------------------------------------------------------

    async def commit(self) -> bool:
        """End it well. False: it had failed and was rolled back instead. Raises RequestRefused."""
        if self._failed:
            self.rollback()
            return False
        if not self._in_block and not self.wrote:
            # A query alone, at one timestamp: there is nothing to validate.
            self._drop()
        txn, self._id = self._id, None
        try:
            if txn is not None:
                self.committing = True
                await self._coordination.commit(txn)
        except BaseException:
            self._end(committed=False)
            raise
        finally:
            self.committing = False
        self._end(committed=True)
        return True

    def rollback(self) -> None:
        """Drop everything and leave the block."""
        self._drop()
        self._end(committed=False)

    def restart(self) -> None:
        """Forget an attempt of an implicit transaction; the next one starts from scratch."""
        assert not self._in_block, "a block is never started again: the client has seen its reads"
        self._drop()
        self._now = 0

    async def lease(self, tables: tuple[Table, ...]) -> None:
        """Wait until nobody else may commit writes to these tables."""
        await self._coordination.lease(self.id, tables)

    def _drop(self) -> None:
        txn, self._id = self._id, None
        if txn is not None:
            self._coordination.abort(txn)
        self._snapshot = None
        self.changed_catalog = False
        self.wrote = False

    def _end(self, *, committed: bool) -> None:
        self._snapshot = None
        self._in_block = False
        self._failed = False
        self._now = 0
        self.statements = 0
        self.changed_catalog = False
        self.wrote = False
        if committed:
            self._variables.committed()
        else:
            self._variables.rolled_back()
