"""What went wrong, by what a caller can do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard.errors import ErrorCategory, ModelError
from callboard.testing import ask_model, make_request
from callboard_providers.models import OpenAIChatModel
from callboard_providers.models.chat_errors import category, retry_after_s
from callboard_providers.models.recorded import Answer, ReplayServer, read_answer, refusal

WIRE = Path(__file__).parents[1] / "data" / "wire"
E = ErrorCategory
RECORDED = {
    "audio": E.UNSUPPORTED_MEDIA,
    "bad_arguments_in_history": E.BAD_REQUEST,
    "bad_json": E.BAD_REQUEST,
    "bad_schema": E.BAD_REQUEST,
    "bad_tool_schema": E.BAD_REQUEST,
    "context_overflow": E.CONTEXT_OVERFLOW,
    "image": E.UNSUPPORTED_MEDIA,
    "no_key": E.AUTH,
    "no_messages": E.BAD_REQUEST,
    "tool_without_function": E.BAD_REQUEST,
    "unknown_part": E.BAD_REQUEST,
    "unknown_path": E.BAD_REQUEST,
    "wrong_type": E.BAD_REQUEST,
}
OVERFLOW = E.CONTEXT_OVERFLOW
WORDED = [
    (429, "Rate limit reached for gpt-5 on tokens per min (TPM)", E.RATE_LIMITED),
    (429, "Too many tokens, please wait before trying again", E.RATE_LIMITED),
    (429, "insufficient_quota You exceeded your current quota", E.QUOTA),
    (402, "payment required", E.QUOTA),
    (400, "context_length_exceeded maximum context length is 8192 tokens", E.CONTEXT_OVERFLOW),
    (400, "prompt is too long: 200001 tokens > 200000 maximum", E.CONTEXT_OVERFLOW),
    (400, "The input token count (1196265) exceeds the maximum number of tokens allowed", OVERFLOW),
    (400, "This model's maximum prompt length is 131072", OVERFLOW),
    (400, "prompt token count of 200000 exceeds the limit of 128000", OVERFLOW),
    (400, "tokens to keep from the initial prompt is greater than the context length", OVERFLOW),
    (400, "Your request exceeded model token limit: 131072", OVERFLOW),
    (400, "Requested input length 200000 exceeds maximum input length 131072", OVERFLOW),
    (400, "context length exceeded", OVERFLOW),
    (400, "max_tokens is too large: this model supports at most 16384 tokens", E.BAD_REQUEST),
    (400, "the tool description is too long", E.BAD_REQUEST),
    (500, "prompt is too long", E.OVERLOADED),
    (400, "content_filter The response was filtered", E.CONTENT_FILTER),
    (403, "country not supported", E.AUTH),
    (503, "the server is overloaded", E.OVERLOADED),
    (404, "the model does not exist", E.BAD_REQUEST),
    (400, "this model does not support image input", E.UNSUPPORTED_MEDIA),
    (None, "something broke", E.OVERLOADED),
]


async def error_of(answer: Answer, api_key: str = "k") -> ModelError:
    with ReplayServer([answer]) as server:
        model = OpenAIChatModel("m", base_url=server.url, api_key=api_key)
        with pytest.raises(ModelError) as caught:
            await ask_model(make_request(model))
        assert len(server.requests) == 1, "retrying is no business of the adapter"
    return caught.value


@pytest.mark.anyio
@pytest.mark.parametrize("name", RECORDED)
async def test_recorded_errors(name: str) -> None:
    error = await error_of(read_answer(WIRE / f"{name}.json"))
    assert error.category is RECORDED[name], error


@pytest.mark.parametrize(("status", "words", "wanted"), WORDED)
def test_pi_70_the_words_of_an_error_count(status: int | None, words: str, wanted: E) -> None:
    assert category(words, status) is wanted


@pytest.mark.parametrize(
    "words",
    [
        "model not loaded",
        "image is sensitive, messages[3]",
        "You uploaded an unsupported image. Please make sure your image has one of these formats",
        "unsupported image format: tiff",
        "image too large: this tier does not support images of 30 MB",
    ],
)
def test_med_02_what_is_wrong_with_one_image_is_no_word_about_the_model(words: str) -> None:
    assert category(words, 400) is E.BAD_REQUEST


@pytest.mark.parametrize(
    "words",
    [
        "image input is not supported - hint: if this is unexpected, you may need the mmproj",
        "Unsupported content type: image_url",
        "this model does not support\nvision",
    ],
)
def test_med_02_a_model_that_takes_no_media_says_so(words: str) -> None:
    assert category(words, 400) is E.UNSUPPORTED_MEDIA


@pytest.mark.anyio
async def test_pi_72_the_wait_asked_for_is_told() -> None:
    error = await error_of(refusal(429, "slow down", headers={"retry-after-ms": "1000"}))
    assert (error.retry_after_s, error.status, error.retryable) == (1.0, 429, True)


@pytest.mark.anyio
async def test_pi_72_what_the_provider_calls_final_is_not_retryable() -> None:
    error = await error_of(refusal(429, "slow down", headers={"x-should-retry": "false"}))
    assert (error.final, error.retryable) == (True, False)


@pytest.mark.anyio
async def test_media_that_a_provider_repeats_are_in_no_error() -> None:
    error = await error_of(refusal(400, f"cannot read data:image/png;base64,{'iVBORw0K' * 40}=="))
    assert "iVBORw0K" not in str(error)
    assert "cannot read data:image/png;base64,(data)" in str(error)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(headers) == wait_s


@pytest.mark.anyio
async def test_a_key_is_in_no_text() -> None:
    key = "sk-very-secret-0123456789"
    error = await error_of(refusal(401, f"Incorrect API key provided: {key}"), api_key=key)
    assert key not in str(error)
    assert key not in repr(OpenAIChatModel("m", api_key=key))


@pytest.mark.anyio
async def test_no_server_is_a_network_error() -> None:
    with ReplayServer([Answer()]) as server:
        url = server.url
    with pytest.raises(ModelError) as caught:
        await ask_model(make_request(OpenAIChatModel("m", base_url=url)))
    assert caught.value.category is E.NETWORK
