"""The sessions of `callboard chat`: one SQLite file of this user, and one address for each."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path

from callboard.actors.address import Address
from callboard.agent import ReActAgent
from callboard.journaling.sqlite_file import addresses
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard_console.ask import Wish, make_agent
from callboard_console.exits import CommandError

FILE = "chats.db"


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation with its name. `is_kept` says that it outlives the process."""

    name: str
    agent: ReActAgent
    journal: SqliteJournal
    is_kept: bool
    lock: int  # the descriptor of a locked file

    def close(self) -> None:
        """Close the file, and let other chats have the session."""
        self.journal.close()
        os.close(self.lock)


def state_folder() -> Path:
    """Where sessions are kept: CALLBOARD_STATE_DIR, or callboard's part of XDG_STATE_HOME."""
    if chosen := os.environ.get("CALLBOARD_STATE_DIR"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "callboard"


def sessions_file() -> Path:
    """The file of all sessions; its folder is made, for its owner only.

    Raises:
        CommandError: the folder cannot be made.
    """
    folder = state_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"the sessions cannot be kept in {folder}: {error.strerror}; set CALLBOARD_STATE_DIR"
        ) from error
    return folder / FILE


def open_session(wish: Wish, name: str) -> Session:
    """The session of this name: a new one, or what an earlier chat left.

    Raises:
        CallboardError: the agent could not be made, or the file cannot be opened.
    """
    if not name:
        raise CommandError("--session '' is no name")
    file = sessions_file()
    lock = _locked(file, name)
    try:
        journal = SqliteJournal(file, address=str(Address("chat", name)))
        try:
            agent = make_agent(wish, journal)
        except BaseException:
            journal.close()
            raise
    except BaseException:
        os.close(lock)
        raise
    return Session(name, agent, journal, is_kept=agent.journal is journal, lock=lock)


def _locked(file: Path, name: str) -> int:
    """A lock on the session, which ends with the process: two chats would stop each other."""
    mark = sha256(name.encode(errors="replace")).hexdigest()[:16]
    lock = os.open(file.with_name(f"chat-{mark}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise CommandError(
            f"the session {name!r} is open in another chat; take another one: --session NAME"
        ) from error
    return lock


def session_names() -> list[str]:
    """The sessions that hold something."""
    chats = [Address.parse(address) for address in addresses(sessions_file())]
    return [chat.key for chat in chats if chat.type == "chat"]


def open_another(wish: Wish, current: Session, name: str = "") -> Session:
    """A fresh session, named like this one with the next free number unless a name is given.

    Raises:
        CommandError: the name is taken, or the agent cannot begin another conversation.
    """
    taken = {current.name, *session_names()}
    if name in taken:
        raise CommandError(f"there is a session {name!r} already: callboard chat --session {name}")
    stem = current.name.rstrip("0123456789").rstrip("-") or current.name
    free = next(f"{stem}-{n}" for n in count(2) if f"{stem}-{n}" not in taken)
    opened = open_session(wish, name or free)
    if opened.agent is current.agent:
        opened.close()
        raise CommandError("the agent is one object with one conversation; name what makes it")
    return opened
