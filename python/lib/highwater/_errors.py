"""What can go wrong. Messages name table, column and option, and say what to do."""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """The base of all errors of the engine."""

    #: Whether the same transaction may succeed when it is run again.
    retryable: bool = False
    #: The table that the error is about.
    table: Optional[str] = None
    #: The index that the error is about; "PRIMARY" is the primary key.
    index: Optional[str] = None


class DuplicateKey(Error):
    """A unique key exists already."""


class LockTimeout(Error):
    """Another transaction held a lock for too long. The call was undone; the transaction can continue."""

    retryable = True


class LockNotAvailable(Error):
    """A lock that is not waited for is held by another transaction. The call was undone; the transaction can continue."""

    retryable = True


class Deadlock(Error):
    """The transaction was rolled back to end a deadlock."""

    retryable = True


class WriteConflict(Error):
    """The row changed after the transaction's snapshot."""

    retryable = True


class Interrupted(Error):
    """Another thread has interrupted the call. It was undone; the transaction can continue."""


class NoSuchTable(Error):
    """There is no such table."""


class TableExists(Error):
    """There is such a table already."""


class TableChanged(Error):
    """The table was dropped or changed since it was opened: open it again."""


class NoSuchColumn(Error):
    """The table has no such column."""


class NoSuchIndex(Error):
    """The table has no such index."""


class SchemaError(Error):
    """A table or an index cannot be as it is described."""


class BadValue(Error, ValueError):
    """A value does not fit its column."""


class KeyTooLong(Error):
    """A key is too long for its index."""


class RowTooLarge(Error):
    """A row is too large."""


class BadOption(Error):
    """There is no such option, or it does not take the value."""


class OpenError(Error):
    """The folder cannot be opened: it is in use, missing, incomplete or not writable; or its files are of another
    version."""


class Corrupt(Error):
    """Something in the files is damaged."""


class StorageError(Error):
    """An input or output operation failed."""


class DiskFull(StorageError):
    """There is no space left."""


class Stopped(Error):
    """An earlier failure stopped the database: close it and open it again."""


class Closed(Error):
    """The database was closed."""


class Forked(Error):
    """The database was opened before this process was forked: open it after the fork."""


class NotServed(Error):
    """No process that serves readers has the database open."""


class ReaderDisconnected(Error):
    """The connection to the process that has the database open has ended: take another snapshot."""


class UsageError(Error):
    """A call that is not possible in the present state of the transaction or database."""
