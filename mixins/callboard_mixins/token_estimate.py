"""About how many tokens a request takes, before anybody counted them. Used by `rate_limit` and
`compaction`.
"""

from __future__ import annotations

from callboard.json_text import canonical
from callboard.messages import ConversationMessage, TextBlock, ThinkingBlock, ToolCall
from callboard.model import ModelRequest
from callboard.per_message import PerMessage

BYTES_PER_TOKEN = 4  # of UTF-8, so that text in other scripts is not thought short
MEDIA_TOKENS = 1_000  # of one image, sound or file
AROUND_TOKENS = 4  # the role of a message, and what stands between two


def estimate(request: ModelRequest) -> int:
    """About how many tokens a request takes, its answer included as far as it is bounded."""
    said = sum([tokens_of(message) for message in request.messages])
    return said + around_tokens(request) + (request.settings.max_tokens or 0)


def around_tokens(request: ModelRequest) -> int:
    """What stands around the messages: the system prompt and the tools."""
    offered = request.offer.tools if request.offer else ()
    tools = sum([len(canonical(tool.parameters)) + len(tool.description) for tool in offered])
    return _tokens(request.system) + tools // BYTES_PER_TOKEN


def _estimated(message: ConversationMessage) -> int:
    tokens = AROUND_TOKENS
    for block in message.content:
        if isinstance(block, (TextBlock, ThinkingBlock)):
            tokens += _tokens(block.text)
        elif isinstance(block, ToolCall):
            tokens += _tokens(block.name + block.raw)
        else:
            tokens += MEDIA_TOKENS
    return tokens


def _tokens(text: str) -> int:
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN


tokens_of = PerMessage(_estimated)
