"""A conversation as the messages of an OpenAI chat request. Called by `chat_request`.

Nothing is sent that the endpoint could choke on: no empty message, no empty text, no broken
arguments, no thinking (this wire format has no place for signatures).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from callboard.messages import (
    AssistantMessage,
    AudioBlock,
    Content,
    ConversationMessage,
    FileBlock,
    ImageBlock,
    Media,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.per_message import PerMessage
from callboard.tooling.tools import wire_name
from callboard_providers.models.hand_over import HandOver

Wire = dict[str, Any]

EMPTY_RESULT = "(the result is empty)"
MEDIA_FOLLOWS = "(the result follows as media in the next user message)"


class ChatMessages:
    """Converts conversations; each message object is converted once.

    `model` is the name whose own messages are sent as they are; what others left is made safe.
    `system_anywhere` says that the endpoint takes system messages after the first place. Without
    it (many chat templates refuse them) a later one is sent as a user message, tagged.
    """

    def __init__(self, *, model: str | None = None, system_anywhere: bool = False) -> None:
        self._system_anywhere = system_anywhere
        self._hand_over = HandOver(model)
        self._wire = PerMessage(self._converted)
        self._result_media = PerMessage(_result_media)

    def wire(self, messages: Sequence[ConversationMessage], *, system: str = "") -> list[Wire]:
        """The messages to send: `system` and the leading system messages first, as one."""
        messages = self._hand_over.safe(messages)
        leading = [m.text for m in takewhile(_is_system, messages)]
        first = "\n\n".join(text for text in (system, *leading) if text)
        sent: list[Wire] = [{"role": "system", "content": first}] if first else []
        media: list[Wire] = []  # of the results of one round: it may not part the results
        for message in messages[len(leading) :]:
            if media and not isinstance(message, ToolResultMessage):
                sent.append({"role": "user", "content": media})
                media = []
            sent.extend(self._wire(message))
            if isinstance(message, ToolResultMessage):
                media = media + self._result_media(message)
        if media:
            sent.append({"role": "user", "content": media})
        return sent

    def _converted(self, message: ConversationMessage) -> list[Wire]:
        match message:
            case SystemMessage():
                return self._later_system(message)
            case UserMessage():
                content = user_content(message.content)
                return [{"role": "user", "content": content}] if content else []
            case AssistantMessage():
                return _assistant(message)
            case ToolResultMessage():
                return [
                    {
                        "role": "tool",
                        "tool_call_id": message.call_id,
                        "content": _result_text(message),
                    }
                ]

    def _later_system(self, message: SystemMessage) -> list[Wire]:
        if not message.text:
            return []
        if self._system_anywhere:
            return [{"role": "system", "content": message.text}]
        return [{"role": "user", "content": f"<system>\n{message.text}\n</system>"}]


def _is_system(message: ConversationMessage) -> bool:
    return isinstance(message, SystemMessage)


def user_content(blocks: Iterable[Content]) -> str | list[Wire]:
    """One text as a string (which every endpoint takes), anything else as parts."""
    parts = [part for part in map(_part, blocks) if part]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(block: Content) -> Wire:
    match block:
        case TextBlock():
            return _text(block.text) if block.text else {}
        case ImageBlock():
            url = _url(block)
            return {"type": "image_url", "image_url": {"url": url}} if url else _absent(block)
        case AudioBlock(data=str(data)):
            sound = {"data": data, "format": _audio_format(block.media_type)}
            return {"type": "input_audio", "input_audio": sound}
        case FileBlock(data=str()):
            file = {"filename": block.name or "file", "file_data": _url(block)}
            return {"type": "file", "file": file}
        case _:
            return _absent(block)


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _url(media: Media) -> str | None:
    return media.url if media.data is None else f"data:{media.media_type};base64,{media.data}"


def _audio_format(media_type: str) -> str:
    kind = media_type.partition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav"}.get(kind, kind)


def _absent(media: ImageBlock | AudioBlock | FileBlock) -> Wire:
    """Stands where media cannot be sent, so that the model knows that something is missing."""
    return _text(f"[{media.type} ({media.media_type}) that is not shown here]")


def _assistant(message: AssistantMessage) -> list[Wire]:
    """At most one message; none where nothing of it can be sent (thinking only, for instance)."""
    sent: Wire = {"role": "assistant"}
    text = "\n".join(_shown(message))
    if text:
        sent["content"] = text
    calls = [_call(call) for call in message.calls]
    if calls:
        sent["tool_calls"] = calls
    return [sent] if len(sent) > 1 else []


def _shown(message: AssistantMessage) -> Iterable[str]:
    for block in message.content:
        if isinstance(block, TextBlock) and block.text:
            yield block.text
        elif isinstance(block, (ImageBlock, AudioBlock)):
            yield str(_absent(block)["text"])


def _call(call: ToolCall) -> Wire:
    function = {"name": wire_name(call.name), "arguments": call.sendable_raw}
    return {"id": call.id, "type": "function", "function": function}


def _result_text(message: ToolResultMessage) -> str:
    if message.text:
        return message.text
    return MEDIA_FOLLOWS if message.content else EMPTY_RESULT


def _result_media(message: ConversationMessage) -> list[Wire]:
    if not isinstance(message, ToolResultMessage):
        return []
    media = [_part(block) for block in message.content if isinstance(block, Media)]
    title = f"From the result of {message.tool_name} ({message.call_id}):"
    return [_text(title), *media] if media else []
