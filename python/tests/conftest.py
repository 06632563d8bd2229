"""What the tests share."""

import pytest

from highwater import Database


@pytest.fixture
def db(tmp_path):
    """An open database in a folder of its own."""
    database = Database(tmp_path / "db", buffer_pool_size="16MiB", lock_wait_timeout_ms=2000)
    yield database
    database.close()


@pytest.fixture
def numbers(db):
    """A table of ten numbers with their squares."""
    table = db.create_table(
        "numbers",
        {"id": "u64", "square": "i64", "name": "text(40) null"},
        "id",
        indexes={"by_square": ["square"]},
    )
    with db.transaction() as txn:
        assert txn.insert_many(table, ((n, n * n, None) for n in range(1, 11))) == 10
    return table


def ids(rows):
    """The ids of rows."""
    return [row["id"] for row in rows]
