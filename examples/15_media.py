"""Media that a model does not take, or that may not be read, never reach it.

Last line: a model that sees gets: What is this? image/png
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from callboard import ImageBlock, ModelRequest, ReActAgent, TextBlock, UserMessage
from callboard.model import Capabilities
from callboard.testing import ScriptedModel
from callboard_mixins import MediaFilterMixin, MediaPolicy

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)


class Viewer(MediaFilterMixin, ReActAgent):
    """An agent that may be shown anything."""


def first_of(request: ModelRequest) -> str:
    """What the model was sent as the first message."""
    shown: list[str] = []
    for block in request.messages[0].content:
        if isinstance(block, TextBlock):
            shown.append(block.text)
        elif isinstance(block, ImageBlock):
            shown.append(block.media_type)
    return " ".join(shown)


def main() -> None:
    prompt = (TextBlock(text="What is this?"), ImageBlock(media_type="image/png", data=PIXEL))
    blind = ScriptedModel(["I cannot see it."], capabilities=Capabilities())
    agent = Viewer(model=blind)
    agent.run_sync(UserMessage(content=prompt))
    print(f"a model of text gets: {first_of(blind.requests[0])}")

    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "grey.png")
        picture.write_bytes(base64.b64decode(PIXEL))
        for roots in ([], [folder]):
            model = ScriptedModel(["A grey dot."])
            reader = Viewer(model=model, media_policy=MediaPolicy(roots=roots))
            reader.run_sync(UserMessage(content=(ImageBlock(url=picture.as_uri()),)))
            print(f"from {len(roots)} allowed folders: {first_of(model.requests[0])}")

    sighted = ScriptedModel(["A grey dot."])
    Viewer(model=sighted, messages=agent.messages).run_sync("And now?")
    print(f"a model that sees gets: {first_of(sighted.requests[0])}")


if __name__ == "__main__":
    main()
