"""`callboard journal`: what people and programs see of a journal file."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from callboard import SqliteJournal
from callboard.journaling.record_codec import decode
from callboard.journaling.records import LayerFact, Record, Withdrawn
from callboard.journaling.sqlite_file import addresses
from callboard.testing import call
from tests.console.command import callboard
from tests.console.terminal import Terminal
from tests.framework.kit import agent_of, echo


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The journal of one run."""
    path = tmp_path / "agent.db"
    with SqliteJournal(path) as journal:
        agent_of([call("echo", "a", x="é\x1b[2J"), "done"], echo, journal=journal)[0].run_sync("go")
    return path


def journal(*arguments: str, file: Path) -> subprocess.CompletedProcess[str]:
    command, *options = arguments
    return callboard("journal", command, file.name, *options, cwd=file.parent)


def records(file: Path, address: str = "agent/agent") -> list[Record]:
    with SqliteJournal(file, address=address) as opened:
        return list(anyio.run(opened.read))


def test_show_tells_one_line_a_record(file: Path) -> None:
    lines = journal("show", file=file).stdout.splitlines()
    assert [line.split()[3] for line in lines] == [record.kind for record in records(file)]
    told = [line[52:] for line in lines]
    assert told[1] == "go"
    assert told[3].startswith('→ echo({"x":"é')
    assert "a: echo (effect)" in told
    assert told[-1] == "finished: done"


def test_what_a_model_wrote_does_not_reach_the_terminals_controls(file: Path) -> None:
    assert "\x1b" not in journal("show", file=file).stdout


def test_export_gives_what_is_kept(file: Path) -> None:
    lines = journal("export", "--format", "jsonl", file=file).stdout.splitlines()
    assert [decode(line.encode()) for line in lines] == records(file)


def test_a_file_of_several_agents_wants_an_address(file: Path) -> None:
    with SqliteJournal(file, address="writer/bob") as bobs:
        anyio.run(bobs.append, [Withdrawn("q")], 0)
    done = journal("show", file=file)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: agent.db holds agent/agent ({len(records(file))} records), writer/bob (1 records);"
        " name one with --address\n"
    )
    assert journal("show", "--address", "writer/bob", file=file).stdout.count("\n") == 1


def test_an_address_that_is_not_there_is_told(file: Path) -> None:
    done = journal("export", "--address", "a/b", file=file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("records); not 'a/b'\n")


def test_a_record_that_cannot_be_read_is_told_among_the_others(file: Path) -> None:
    with SqliteJournal(file) as opened:
        length = len(records(file))
        added: list[Record] = [LayerFact("x", {}), Withdrawn("last")]
        anyio.run(opened.append, added, length)
        opened._connection.execute("UPDATE journal SET record = '{\"v\":1}' WHERE n = ?", (length,))
    done = journal("show", file=file)
    assert done.returncode == 1
    assert "!! a record needs a version and a kind" in done.stdout
    assert done.stdout.splitlines()[-1].endswith('"item_id":"last"')
    assert done.stderr == "error: 1 records cannot be read\n"


@pytest.mark.parametrize(
    ("name", "told"),
    [("no.db", "there is no file no.db"), ("a.txt", "a.txt is no SQLite database")],
)
def test_what_is_no_journal_is_one_line(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "a.txt").write_text("text" * 300)
    done = journal("show", file=tmp_path / name)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith(f"error: {told}")
    assert not (tmp_path / "no.db").exists()


def test_tail_ends_with_the_newest(file: Path) -> None:
    shown = journal("show", file=file).stdout.splitlines()
    assert journal("tail", "agent/agent", "-n", "3", file=file).stdout.splitlines() == shown[-3:]


def test_tail_of_all_says_whose_each_record_is(file: Path) -> None:
    with SqliteJournal(file, address="writer/bob") as bobs:
        anyio.run(bobs.append, [Withdrawn("q")], 0)
    whose = [line.split()[0] for line in journal("tail", "-n2", file=file).stdout.splitlines()]
    assert whose == ["agent/agent", "writer/bob"]


def test_tail_of_nobody_is_told(file: Path) -> None:
    done = journal("tail", "a/b", file=file)
    assert (done.returncode, done.stderr[-12:]) == (2, "; not 'a/b'\n")


@pytest.mark.parametrize("is_open", [True, False], ids=["in use", "closed"])
def test_tail_follows_what_comes_until_ctrl_c(file: Path, is_open: bool) -> None:
    """Whether or not a writer has the file open when it begins."""
    opened = SqliteJournal(file) if is_open else None
    with Terminal("journal", "tail", file.name, "-f", "-n", "1", cwd=file.parent) as terminal:
        terminal.expect("finished: done")
        with opened or SqliteJournal(file) as written:
            for count in (len(records(file)), len(records(file)) + 1):
                anyio.run(written.append, [LayerFact("note", {"count": count})], count)
                terminal.expect(f'{{"count":{count}}}')
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.leave() == 0
    assert "Traceback" not in terminal.text


def test_following_an_agent_waits_for_its_first_record(file: Path) -> None:
    with Terminal("journal", "tail", file.name, "writer/bob", "-f", cwd=file.parent) as terminal:
        with SqliteJournal(file, address="writer/bob") as bobs:
            anyio.run(bobs.append, [LayerFact("note", {"x": "hello"})], 0)
            terminal.expect('{"x":"hello"}')
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.leave() == 0


def test_fork_begins_a_conversation_at_an_earlier_point(file: Path) -> None:
    before = records(file)
    done = journal("fork", "agent/agent", "agent/other", "--at", "3", file=file)
    assert (done.returncode, done.stdout) == (0, "agent/other: 7 records\n")
    fork = records(file, "agent/other")
    assert fork[:4] == before[:4]
    assert [record.kind for record in fork[4:]] == ["observed", "run_finished", "layer"]
    assert records(file) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("agent/agent", "agent/agent"), "holds records already"),
        (("agent/agent", "a/b", "--at", "99"), "at=99: give the number of a record, 0 to 9"),
        (("a/b", "c/d"), "not 'a/b'"),
        (("agent/agent", "bob"), "'bob' is not an address"),
    ],
)
def test_what_cannot_be_forked_is_one_line_and_writes_nothing(
    file: Path, arguments: tuple[str, ...], told: str
) -> None:
    before = records(file)
    done = journal("fork", *arguments, file=file)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert (records(file), list(addresses(file))) == (before, ["agent/agent"])


def test_an_engine_that_cannot_be_reached_is_one_line(file: Path) -> None:
    done = callboard("journal", "show", "nats://127.0.0.1:4222", cwd=file.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no NATS server lets us in at nats://127.0.0.1:4222")
