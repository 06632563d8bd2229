from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from os import PathLike
from types import TracebackType
from typing import Any, TypeVar, Union, final
from uuid import UUID

from typing_extensions import Self

_Value = Union[None, bool, int, float, str, bytes, bytearray, date, time, datetime, Decimal, UUID, dict[str, Any], list[Any]]
_Key = Union[_Value, tuple[_Value, ...], list[_Value]]
_Row = Union[dict[str, _Value], tuple[_Value, ...], list[_Value]]
_Path = Union[str, PathLike[str]]
_Table = Union[Table, str]
_Columns = Union[str, Sequence[str]]
_Option = Union[str, int, float, bool]
_R = TypeVar("_R")

__all__ = [
    "__version__",
    "Database",
    "Index",
    "Reader",
    "ReaderRows",
    "ReaderSnapshot",
    "Rows",
    "Savepoint",
    "Scan",
    "Snapshot",
    "Table",
    "Transaction",
]

__version__: str

@final
class Index:
    def __new__(cls, columns: Sequence[str], *, unique: bool = False, covering: Sequence[str] | None = None) -> Self: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def unique(self) -> bool: ...
    @property
    def covering(self) -> list[str]: ...

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> dict[str, str]: ...
    @property
    def primary_key(self) -> list[str]: ...
    @property
    def indexes(self) -> dict[str, list[str]]: ...

@final
class Savepoint: ...

@final
class Rows(Iterator[Any]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@final
class Scan:
    def __iter__(self) -> Rows: ...
    def tuples(self) -> Rows: ...
    def first(self) -> dict[str, Any] | None: ...
    def count(self) -> int: ...
    def estimate(self) -> int: ...
    def delete(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_arrow(self) -> Any: ...
    def to_pandas(self) -> Any: ...

@final
class Transaction:
    def insert(self, table: _Table, row: _Row) -> int | None: ...
    def insert_many(self, table: _Table, rows: Iterable[_Row]) -> int: ...
    def insert_arrow(self, table: _Table, data: object) -> int: ...
    def upsert(self, table: _Table, row: _Row, columns: Sequence[str] | None = None) -> bool: ...
    def replace(self, table: _Table, row: _Row) -> int | None: ...
    def update(self, table: _Table, key: _Key, changes: dict[str, _Value]) -> bool: ...
    def delete(self, table: _Table, key: _Key) -> bool: ...
    def get(self, table: _Table, key: _Key) -> dict[str, Any] | None: ...
    def get_by(self, table: _Table, index: str, key: _Key) -> dict[str, Any] | None: ...
    def get_for_update(
        self,
        table: _Table,
        key: _Key,
        *,
        nowait: bool = False,
        skip_locked: bool = False,
        lock_timeout: float | None = None,
    ) -> dict[str, Any] | None: ...
    def get_for_share(
        self,
        table: _Table,
        key: _Key,
        *,
        nowait: bool = False,
        skip_locked: bool = False,
        lock_timeout: float | None = None,
    ) -> dict[str, Any] | None: ...
    def scan(
        self,
        table: _Table,
        index: str | None = None,
        *,
        ge: _Key = None,
        gt: _Key = None,
        le: _Key = None,
        lt: _Key = None,
        prefix: _Key = None,
        starts_with: _Key = None,
        columns: Sequence[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
        for_update: bool = False,
        for_share: bool = False,
        nowait: bool = False,
        skip_locked: bool = False,
        lock_timeout: float | None = None,
    ) -> Scan: ...
    def savepoint(self) -> Savepoint: ...
    def rollback_to(self, savepoint: Savepoint) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def interrupt(self) -> None: ...
    @property
    def is_open(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...

@final
class Snapshot:
    def get(self, table: _Table, key: _Key) -> dict[str, Any] | None: ...
    def get_by(self, table: _Table, index: str, key: _Key) -> dict[str, Any] | None: ...
    def scan(
        self,
        table: _Table,
        index: str | None = None,
        *,
        ge: _Key = None,
        gt: _Key = None,
        le: _Key = None,
        lt: _Key = None,
        prefix: _Key = None,
        starts_with: _Key = None,
        columns: Sequence[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Scan: ...
    def same_snapshot(self) -> Snapshot: ...
    def close(self) -> None: ...
    def interrupt(self) -> None: ...
    @property
    def is_open(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...

@final
class ReaderRows(Iterator[Any]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@final
class ReaderSnapshot:
    def get(self, table: str, key: _Key) -> dict[str, Any] | None: ...
    def get_by(self, table: str, index: str, key: _Key) -> dict[str, Any] | None: ...
    def scan(
        self,
        table: str,
        index: str | None = None,
        *,
        ge: _Key = None,
        gt: _Key = None,
        le: _Key = None,
        lt: _Key = None,
        prefix: _Key = None,
        starts_with: _Key = None,
        columns: Sequence[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> ReaderRows: ...
    def count(self, table: str) -> int: ...
    def same_snapshot(self) -> ReaderSnapshot: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...

@final
class Reader:
    def snapshot(self) -> ReaderSnapshot: ...
    def tables(self) -> list[str]: ...
    def metrics(self, *, openmetrics: bool = False) -> str: ...

@final
class Database:
    def __new__(cls, path: _Path, *, read_only: bool = False, **options: _Option) -> Self: ...
    @staticmethod
    def in_memory(**options: _Option) -> Database: ...
    @staticmethod
    def open_reader(path: _Path) -> Reader: ...
    @staticmethod
    def restore(backups: Sequence[_Path], path: _Path, **options: _Option) -> None: ...
    def close(self) -> None: ...
    def table(self, name: str) -> Table: ...
    def tables(self) -> list[Table]: ...
    def create_table(
        self,
        name: str,
        columns: dict[str, str],
        primary_key: _Columns,
        *,
        indexes: Mapping[str, _Columns | Index] | None = None,
        auto_increment: str | None = None,
        expires: str | None = None,
        collations: dict[str, str] | None = None,
        defaults: dict[str, _Value] | None = None,
        long_keys: bool = False,
        log_changes: bool = False,
    ) -> Table: ...
    def table_or_create(
        self,
        name: str,
        columns: dict[str, str],
        primary_key: _Columns,
        *,
        indexes: Mapping[str, _Columns | Index] | None = None,
        auto_increment: str | None = None,
        expires: str | None = None,
        collations: dict[str, str] | None = None,
        defaults: dict[str, _Value] | None = None,
        long_keys: bool = False,
        log_changes: bool = False,
    ) -> Table: ...
    def migrate(
        self,
        name: str,
        columns: dict[str, str],
        primary_key: _Columns,
        *,
        indexes: Mapping[str, _Columns | Index] | None = None,
        auto_increment: str | None = None,
        expires: str | None = None,
        collations: dict[str, str] | None = None,
        defaults: dict[str, _Value] | None = None,
        long_keys: bool = False,
        log_changes: bool = False,
    ) -> Table: ...
    def drop_table(self, table: _Table) -> None: ...
    def rename_table(self, table: _Table, to: str) -> Table: ...
    def truncate_table(self, table: _Table) -> Table: ...
    def create_index(self, table: _Table, name: str, columns: _Columns | Index) -> None: ...
    def drop_index(self, table: _Table, name: str) -> None: ...
    def transaction(
        self,
        *,
        isolation: str = "repeatable-read",
        lock_timeout: float | None = None,
        first_committer_wins: bool = False,
        snapshot_at_begin: bool = False,
        durability: str | None = None,
    ) -> Transaction: ...
    def snapshot(self) -> Snapshot: ...
    def transact(self, work: Callable[[Transaction], _R], **options: Any) -> _R: ...
    def flush_log(self) -> None: ...
    def backup(self, path: _Path, *, base: _Path | None = None, max_bytes_per_s: int = 0) -> None: ...
    def check(self) -> list[str]: ...
    def metrics(self, *, openmetrics: bool = False) -> str: ...
    @property
    def options(self) -> dict[str, str]: ...
    def set_option(self, name: str, value: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...
