"""Writing, changing, moving and deleting files below one folder, as tools."""

from __future__ import annotations

import os

from callboard.tooling.tools import Tool, tool
from callboard.workspace import Workspace
from callboard_providers.tools.replacements import replaced
from callboard_providers.tools.texts import read_text


def editing_tools(root: str | os.PathLike[str]) -> tuple[Tool, Tool, Tool, Tool]:
    """The tools `write_file`, `edit_file`, `move_file` and `delete_file` below `root`.

    They never overlap in one agent. A file is replaced whole or not at all, whatever happens.
    """
    workspace = Workspace(root)
    writing = resource_of(workspace)

    @tool(effect="idempotent", resource=writing)
    def write_file(path: str, text: str) -> str:
        """Write a text file, a new one or in place of the old one. To change a part, edit it.

        Args:
            path: The file; missing folders are made.
            text: All that is to be in it.
        """
        content = text.encode()
        workspace.write(path, content)
        return f"{path} has {len(content)} bytes in {len(text.splitlines())} lines now"

    @tool(resource=writing)
    def edit_file(path: str, old_text: str, new_text: str, *, every: bool = False) -> str:
        """Replace a piece of a text file.

        Args:
            path: The file.
            old_text: The piece, exactly as it stands there, and long enough to be the only one.
            new_text: What is to be there instead.
            every: Replace it wherever it stands.
        """
        old = read_text(workspace, path)
        text, count = replaced(old.text, old_text, new_text, every=every)
        workspace.write(path, old.encoded(text), instead_of=old.state)
        return f"replaced {count} {'piece' if count == 1 else 'pieces'} in {path}"

    @tool(resource=writing)
    def move_file(path: str, new_path: str) -> str:
        """Move or rename a file or a folder. Nothing is replaced.

        Args:
            path: The file or folder.
            new_path: Its new place; missing folders are made.
        """
        workspace.move(path, new_path)
        return f"{path} is {new_path} now"

    @tool(resource=writing)
    def delete_file(path: str) -> str:
        """Delete a file or an empty folder.

        Args:
            path: The file or folder.
        """
        workspace.delete(path)
        return f"{path} is deleted"

    return write_file, edit_file, move_file, delete_file


def resource_of(workspace: Workspace) -> str:
    """The resource of all tools that change what is below a folder."""
    return f"files below {workspace.root}"
