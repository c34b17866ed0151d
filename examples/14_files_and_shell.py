"""Tools for one folder: search, edit and read its files, and run commands in it.

Last line: It prints 42 now; what stands beside the folder stayed unread.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from callboard import ReActAgent, ToolResultMessage
from callboard.testing import ScriptedModel, call
from callboard_providers.tools import editing_tools, file_tools, searching_tools, shell_tool

SUM = "total=0\nfor number in $*; do\n  (( total -= number ))\ndone\necho $total\n"


def main() -> None:
    model = ScriptedModel(
        [
            call("grep_files", pattern=r"total\w* [-+]= ", file_names="*.sh"),
            # Not there word for word: the tool names the line that is like it.
            call("edit_file", path="sum.sh", old_text="(( total-=number ))", new_text="..."),
            call("edit_file", path="sum.sh", old_text="total -=", new_text="total +="),
            call("run_command", command="bash sum.sh 20 22"),
            call("read_file", path="../notes.txt"),
            call("run_command", command="sleep 1000 & echo started"),  # and ended with the call
            "It prints 42 now; what stands beside the folder stayed unread.",
        ]
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        folder.mkdir()
        (folder.parent / "notes.txt").write_text("private")
        (folder / "sum.sh").write_text(SUM)
        shell = shell_tool(folder)  # in a sandbox where bubblewrap works
        if not shell.sandboxed:  # then one would have a guard ask a human about each command
            print("no sandbox here: commands may do what you may")
        tools = [*file_tools(folder), *searching_tools(folder), *editing_tools(folder), shell]
        agent = ReActAgent(model=model, tools=tools)
        reply = agent.run_sync("sum.sh 20 22 must print 42. Repair it.")
        for message in reply.messages:
            if isinstance(message, ToolResultMessage):
                print(f"{message.tool_name}: {message.text}")
        print(reply.text)


if __name__ == "__main__":
    main()
