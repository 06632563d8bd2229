"""The type stubs are those of the module."""

import subprocess
import sys



def test_the_stubs_are_those_of_the_module(tmp_path):
    command = [sys.executable, "-m", "mypy.stubtest", "highwater"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_is_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from highwater import Database\n"
        "with Database('x') as db, db.transaction() as txn:\n"
        "    txn.insert('t', {'id': 1})\n"
        "    txn.insert(5, {'id': 1})\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--strict", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "program.py:4: error" in done.stdout and "Found 1 error" in done.stdout, done.stdout
