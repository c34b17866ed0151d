"""`callboard run`, `agents` and `deadletters`, and journals and approvals over an engine."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from callboard.journaling.sqlite_file import addresses
from tests.console.command import callboard
from tests.console.serving import Serving, dead, standing, tell

pytestmark = pytest.mark.timeout(120)


def shown(folder: Path, *arguments: str) -> str:
    """What a command prints that ends well."""
    done = callboard(*arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def until(holds: Callable[[], bool], *, patience_s: float = 45.0) -> None:
    """Look again until it is so."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.05)


def test_a_message_is_handled_and_its_question_answered_from_elsewhere(tmp_path: Path) -> None:
    """And the agent that is served goes on at once."""
    with Serving(tmp_path) as serving:
        assert serving.first == "serving sqlite:team.db; Ctrl-C stops\n"
        tell(tmp_path, "clerk/ann", "pay")
        until(lambda: standing(tmp_path, "clerk/ann") == "waiting")
        waiting = shown(tmp_path, "approvals", "list", "sqlite:team.db")
        assert waiting.split()[1:3] == ["clerk/ann", "pay"]
        assert not (tmp_path / "paid.txt").exists()
        told = shown(tmp_path, "approvals", "approve", "team.db", waiting.split()[0])
        assert told == 'approved: pay {"amount": 5}\n'
        until(lambda: standing(tmp_path, "clerk/ann") == "idle")
        assert (tmp_path / "paid.txt").read_text() == "5\n"
        serving.signal()
        assert serving.leave() == (0, "stopping; again to stop at once\n")


def test_an_answer_that_is_given_while_nobody_serves_is_gone_on_with_later(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        tell(tmp_path, "clerk/ann", "pay")
        until(lambda: standing(tmp_path, "clerk/ann") == "waiting")
        serving.signal(signal.SIGINT)
        assert serving.leave()[0] == 0
    asked = shown(tmp_path, "approvals", "list", "team.db").split()[0]
    shown(tmp_path, "approvals", "deny", "team.db", asked, "no money")
    with Serving(tmp_path):
        until(lambda: standing(tmp_path, "clerk/ann") == "idle")
    tail = shown(tmp_path, "journal", "tail", "sqlite:team.db", "clerk/ann")
    assert tail.splitlines()[-1].endswith("finished: done: Denied by the user: no money")
    assert not (tmp_path / "paid.txt").exists()


def test_a_run_that_does_not_end_in_time_is_cut_off_and_said_so(tmp_path: Path) -> None:
    with Serving(tmp_path, "--stop-s", "0.2") as serving:
        tell(tmp_path, "sleeper/sue", "sleep")
        until((tmp_path / "asleep.txt").exists)
        serving.signal()
        code, text = serving.leave()
    assert code == 0
    assert text.endswith("sleeper/sue was cut off; it goes on when it is served again\n")
    assert shown(tmp_path, "agents", "team.db").split()[1] == "running"


def test_a_second_signal_stops_it_at_once(tmp_path: Path) -> None:
    with Serving(tmp_path, "--stop-s", "3600") as serving:
        tell(tmp_path, "sleeper/sue", "sleep")
        until((tmp_path / "asleep.txt").exists)
        serving.signal()
        assert serving.process.stdout is not None
        assert serving.process.stdout.readline().startswith("stopping")
        serving.signal()
        assert serving.leave(30)[0] == 130


def test_dead_letters_are_listed_sent_again_and_dropped(tmp_path: Path) -> None:
    with Serving(tmp_path):
        tell(tmp_path, "broken/x", "hm")
        until(lambda: dead(tmp_path) == [1])
        assert "ValueError: no good" in shown(tmp_path, "deadletters", "list", "team.db")
        again = shown(tmp_path, "deadletters", "replay", "team.db", "1")
        assert again == "1: sent again\n"
        until(lambda: dead(tmp_path) == [2])
    assert shown(tmp_path, "deadletters", "drop", "team.db", "--all") == "2: dropped\n"
    assert shown(tmp_path, "deadletters", "list", "team.db") == ""
    missing = callboard("deadletters", "drop", "team.db", "7", cwd=tmp_path)
    assert (missing.returncode, missing.stderr) == (1, "error: there is no dead letter 7\n")


def test_a_conversation_of_an_engine_is_forked_and_replayed(tmp_path: Path) -> None:
    with Serving(tmp_path):
        tell(tmp_path, "clerk/ann", "pay")
        until(lambda: standing(tmp_path, "clerk/ann") == "waiting")
        fork = ("journal", "fork", "team.db", "clerk/ann", "clerk/bob", "--at", "3")
        assert shown(tmp_path, *fork) == "clerk/bob: 7 records\n"
        bob = shown(tmp_path, "agents", "team.db", "--kind", "clerk").splitlines()[1]
        assert bob.split()[:3] == ["clerk/bob", "idle", "7"]
        tell(tmp_path, "clerk/bob", "pay")
        until(lambda: len(addresses(tmp_path / "team.db")) == 2)
        twice = callboard(*fork, cwd=tmp_path)
        assert (twice.returncode, "holds records already" in twice.stderr) == (2, True)
        same = ("replay", "team.db", "clerk/ann", "--agent", "team:clerk")
        assert shown(tmp_path, *same) == "the same: 6 records\n"


def test_a_mapping_of_kinds_is_served_as_well(tmp_path: Path) -> None:
    with Serving(tmp_path, system="team:KINDS") as serving:
        tell(tmp_path, "clerk/ann", "pay")
        until(lambda: standing(tmp_path, "clerk/ann") == "waiting")
        serving.signal()
        assert serving.leave()[0] == 0


def test_what_registers_no_kinds_is_wrong_usage(tmp_path: Path) -> None:
    with Serving(tmp_path, system="team:NOTHING") as serving:
        assert serving.leave()[0] == 2
    assert serving.first.startswith("error: 'team:NOTHING' is 7: name a function")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("no.db", "there is no file no.db"),
        ("sqlite:no.db", "there is no file no.db"),
        ("nix:here", "there is no engine 'nix:here'; there are: "),
        ("memory", "the engine 'memory' ends with its process"),
    ],
)
def test_an_engine_that_is_not_there_is_one_line(tmp_path: Path, spec: str, told: str) -> None:
    done = callboard("agents", spec, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {told}")
    assert list(tmp_path.iterdir()) == []
