"""`callboard chat` on a real terminal: typing while it works, Ctrl-C, and a sudden death."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.console.chat_kit import bench, state
from tests.console.command import calls
from tests.console.terminal import CTRL_C, CTRL_D, ENTER, UP, Terminal

TOOL = ("--no-built-in", "--tool", "own:send")


def chatting(folder: Path, answers: list[Any], *options: str) -> Terminal:
    return Terminal(*bench(folder, answers, *TOOL, *options), cwd=folder, **state(folder))


def working(terminal: Terminal) -> None:
    """Ask, and wait until the tool runs."""
    terminal.expect("tools: send")
    terminal.say("send it")
    terminal.expect("→ send(")


def test_a_line_typed_while_a_tool_runs_steers(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi"), "Sent, and noted."]) as terminal:
        working(terminal)
        terminal.say("then stop")
        terminal.expect("queued behind the running step: then stop")
        (tmp_path / "go").touch()
        terminal.expect("← sent hi")
        terminal.expect("> then stop")
        terminal.expect("Sent, and noted.")
        terminal.expect("finished in ")
        terminal.say("/quit")
        assert terminal.leave() == 0


def test_a_queued_line_can_be_taken_back(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi"), "Sent."]) as terminal:
        working(terminal)
        terminal.say("first")
        terminal.say("second")
        terminal.expect("queued behind the running step: second")
        terminal.say("/withdraw")
        terminal.expect("withdrawn: q_")
        terminal.say("/queue")
        terminal.expect("  first")
        (tmp_path / "go").touch()
        terminal.expect("> first")
        terminal.expect("Sent.")
        terminal.type(CTRL_D)
        assert terminal.leave() == 0
        assert "> second" not in terminal.text


def test_a_half_typed_line_outlives_the_trace(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi"), "Sent.", "Whole."]) as terminal:
        working(terminal)
        terminal.type("half a ")
        (tmp_path / "go").touch()
        terminal.expect("finished in ")
        terminal.say("line")
        terminal.expect("> half a line")
        terminal.expect("Whole.")


def test_ctrl_c_interrupts_and_the_transcript_stays(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi"), "I stopped."]) as terminal:
        working(terminal)
        terminal.type(CTRL_C)
        terminal.expect("interrupted in ")
        terminal.say("/messages")
        terminal.expect("> send it")
        terminal.expect('→ send(text="hi")')
        terminal.expect("← send: ")
        terminal.say("/resume")
        terminal.expect("I stopped.")


def test_what_waited_at_an_interrupt_is_not_lost(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi"), "Both heard."]) as terminal:
        working(terminal)
        terminal.say("first")
        terminal.expect("queued behind")
        terminal.type(CTRL_C)
        terminal.expect("this waits; /resume or another line hands it on")
        terminal.say("second")
        terminal.expect("> first")
        terminal.expect("Both heard.")
        terminal.say("/messages")
        terminal.expect("> first")
        terminal.expect("> second")


def test_ctrl_c_twice_leaves_in_mid_run(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi")]) as terminal:
        working(terminal)
        terminal.type(CTRL_C + CTRL_C)
        assert terminal.leave() == 130
    with chatting(tmp_path, ["I see."]) as terminal:
        terminal.expect("the last run ended as interrupted")
        terminal.say("what now?")
        terminal.expect("I see.")


def test_ctrl_c_at_the_prompt_leaves(tmp_path: Path) -> None:
    with chatting(tmp_path, []) as terminal:
        terminal.expect("tools: send")
        terminal.expect("> ")
        terminal.type(CTRL_C)
        assert terminal.leave() == 130
        assert "Traceback" not in terminal.text


def test_ctrl_c_on_a_typed_line_keeps_it_for_the_up_key(tmp_path: Path) -> None:
    with chatting(tmp_path, ["Heard."]) as terminal:
        terminal.expect("tools: send")
        terminal.expect("> ")  # before that the terminal itself would take Ctrl-C
        terminal.type("precious")
        terminal.expect("precious")
        terminal.type(CTRL_C)
        terminal.expect("the up key brings it back")
        terminal.type(UP + ENTER)
        terminal.expect("> precious")
        terminal.expect("Heard.")


def test_a_chat_killed_in_mid_tool_goes_on_and_says_what_is_unknown(tmp_path: Path) -> None:
    with chatting(tmp_path, [calls("send", text="hi")]) as terminal:
        working(terminal)
        terminal.say("are you there?")
        terminal.expect("queued behind")
        terminal.kill()
    with chatting(tmp_path, ["I do not know.", "Still here."]) as terminal:
        terminal.expect("the last run was cut off in send; it goes on")
        terminal.expect("← send: unknown_outcome: ")
        terminal.expect("> are you there?")
        terminal.expect("I do not know.")
        terminal.say("good")
        terminal.expect("Still here.")
    assert (tmp_path / "ledger").read_text() == "hi\n"


def test_what_a_tool_prints_does_not_break_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with chatting(tmp_path, [calls("shout"), "Said."], "--tool", "own:shout") as terminal:
        terminal.expect("tools: send, shout")
        terminal.say("shout")
        terminal.expect_each("LOUD\n", "finished in ")  # printed by a thread


def test_a_session_is_open_in_one_chat_only(tmp_path: Path) -> None:
    with chatting(tmp_path, []) as first:
        first.expect("tools: send")
        with chatting(tmp_path, []) as second:
            second.expect("the session 'default' is open in another chat")
            assert second.leave() == 2


def test_a_line_that_is_written_grows_above_the_prompt(tmp_path: Path) -> None:
    pieces = [{"text": "Once "}, {"sleep": 0.4}, {"text": "upon a time"}, {"finish": "end"}]
    with chatting(tmp_path, [{"stream": pieces}]) as terminal:
        terminal.expect("tools: send")
        terminal.say("tell")
        terminal.expect("Once")
        terminal.expect("Once upon a time\n")
        terminal.expect("finished in ")
