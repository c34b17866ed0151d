"""Media are what they claim to be, come from where they may, and are not too large."""

from __future__ import annotations

import base64
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from callboard import AudioBlock, ConfigurationError, FileBlock, ImageBlock, TextBlock
from callboard_mixins import MediaPolicy
from callboard_mixins.media.placeholders import Omitted, named_in, with_placeholders
from callboard_mixins.media.sniffing import sniffed
from callboard_mixins.media.soundness import MediaBlock, sound
from tests.mixins.kit import png, png_bytes, run_without

pytestmark = pytest.mark.anyio

USUAL = MediaPolicy()


async def made(block: MediaBlock, **policy: Any) -> MediaBlock | Omitted:
    return await sound(block, MediaPolicy(**policy), None)


async def reason(block: MediaBlock, **policy: Any) -> str:
    result = await made(block, **policy)
    assert isinstance(result, Omitted)
    return result.reason


def image_of(result: object) -> Image.Image:
    assert isinstance(result, ImageBlock)
    assert result.data is not None
    return Image.open(BytesIO(base64.b64decode(result.data)))


def encoded(image: Image.Image, form: str, **options: Any) -> ImageBlock:
    out = BytesIO()
    image.save(out, form, **options)
    data = base64.b64encode(out.getvalue()).decode()
    return ImageBlock(media_type=f"image/{form.lower()}", data=data)


def file_of(data: bytes, kind: str) -> FileBlock:
    return FileBlock(media_type=kind, data=base64.b64encode(data).decode())


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_images_are_known_by_their_content(form: str) -> None:
    block = encoded(Image.new("RGB", (4, 4)), form)
    assert sniffed(base64.b64decode(block.data or "")) == block.media_type


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        (b"fLaC", "audio/flac"),
        (b"OggS", "audio/ogg"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"\xff\xf1\x50", "audio/aac"),
        (b"%PDF-1.7", "application/pdf"),
        (b"<svg xmlns=", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_other_media_are_known_by_their_content(data: bytes, kind: str | None) -> None:
    assert sniffed(data) == kind


async def test_a_sound_image_is_the_same_object() -> None:
    block = png()
    assert await made(block) is block


async def test_a_wrong_type_is_corrected() -> None:
    block = encoded(Image.new("RGB", (4, 4)), "JPEG")
    wrong = ImageBlock(media_type="image/png", data=block.data)
    assert await made(wrong) == block


@pytest.mark.parametrize("data", [b"<html>", b"%PDF-1.7", b""])
async def test_what_is_no_image_is_not_sent_as_one(data: bytes) -> None:
    block = ImageBlock(media_type="image/png", data=base64.b64encode(data).decode())
    assert await reason(block) == "its content is no image"


async def test_a_broken_image_is_not_sent() -> None:
    block = ImageBlock(media_type="image/png", data=base64.b64encode(png_bytes()[:20]).decode())
    assert await reason(block) == "its content cannot be read"


async def test_what_is_no_base64_is_not_sent() -> None:
    assert await reason(ImageBlock(data="no base64!")) == "its data cannot be decoded"


async def test_what_is_no_audio_or_no_pdf_is_not_sent_as_such() -> None:
    assert await reason(AudioBlock(data="PGh0bWw+")) == "its content is no audio"
    assert await reason(file_of(b"<html>", "application/pdf")) == "its content is no PDF"


async def test_a_file_of_another_type_is_sent_as_it_is() -> None:
    block = file_of(b"a,b", "text/csv")
    assert await made(block) is block


async def test_other_media_that_are_too_large_are_left_out() -> None:
    assert await reason(file_of(b"a,b", "text/csv"), other_bytes=2) == "it is too large"


async def test_an_image_with_too_many_pixels_is_scaled_down() -> None:
    assert image_of(await made(png(400, 100), longest_side=100)).size == (100, 25)


async def test_an_image_with_too_many_bytes_is_scaled_down() -> None:
    noise = encoded(Image.effect_noise((400, 400), 90), "PNG")
    result = await made(noise, image_bytes=20_000)
    assert isinstance(result, ImageBlock)
    assert len(result.data or "") * 3 // 4 <= 20_000


async def test_what_cannot_be_made_small_enough_is_left_out() -> None:
    noise = encoded(Image.effect_noise((400, 400), 90), "PNG")
    assert await reason(noise, image_bytes=50) == "it is too large"


async def test_what_is_transparent_stays_so() -> None:
    block = encoded(Image.new("RGBA", (200, 200), (1, 2, 3, 0)), "PNG")
    image = image_of(await made(block, longest_side=100))
    assert image.getchannel("A").getextrema() == (0, 0)


@pytest.mark.parametrize("form", ["BMP", "TIFF"])
async def test_a_type_that_models_do_not_take_is_converted(form: str) -> None:
    result = await made(encoded(Image.new("RGB", (4, 4)), form))
    assert isinstance(result, ImageBlock)
    assert result.media_type == "image/jpeg"


async def test_a_photo_is_turned_upright_when_it_is_scaled() -> None:
    image = Image.new("RGB", (200, 100))
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was held sideways
    block = encoded(image, "JPEG", exif=exif)
    assert image_of(await made(block, longest_side=100)).size == (50, 100)


async def test_an_image_of_enormous_size_is_not_opened() -> None:
    assert await reason(png(2000, 2000), most_pixels=1_000_000) == "it is too large"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an image, beside a file that nobody may read."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a b.png").write_bytes(png_bytes())
    (tmp_path / "secret.png").write_bytes(png_bytes())
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    return inside


async def test_a_file_in_an_allowed_folder_is_read(folder: Path) -> None:
    as_url = (folder / "a b.png").as_uri()
    for url in (as_url, as_url.replace("file://", "file://localhost"), f"{folder}/a b.png"):
        assert await made(ImageBlock(url=url), roots=[folder]) == png()


@pytest.mark.parametrize("name", ["../secret.png", "link.png", "../inside/../secret.png"])
async def test_a_file_outside_is_not_read(folder: Path, name: str) -> None:
    url = f"file://{folder}/{name}"
    assert "no folder" in await reason(ImageBlock(url=url), roots=[folder])


async def test_without_folders_no_file_is_read(folder: Path) -> None:
    assert "no folder" in await reason(ImageBlock(url=(folder / "a b.png").as_uri()))


async def test_a_file_that_is_missing_or_no_file_is_left_out(folder: Path) -> None:
    for name in ("none.png", "."):
        block = ImageBlock(url=f"file://{folder}/{name}")
        assert await reason(block, roots=[folder]) == "its file cannot be read"


async def test_a_file_that_is_too_large_is_left_out(folder: Path) -> None:
    (folder / "big.csv").write_bytes(b"x" * 100)
    block = FileBlock(url=f"{folder}/big.csv", media_type="text/csv")
    assert await reason(block, roots=[folder], other_bytes=99) == "it is too large"


async def test_web_addresses_are_passed_on_and_not_fetched() -> None:
    block = ImageBlock(url="https://192.0.2.1/a.png")
    assert await made(block) is block
    assert "kind" in await reason(block, schemes=frozenset({"gs"}))


@pytest.mark.parametrize("url", ["ftp://x/a.png", "file://other/a.png", "javascript:x"])
async def test_addresses_of_other_kinds_are_left_out(url: str) -> None:
    assert await reason(ImageBlock(url=url)) == "its address is of a kind that is not passed on"


async def test_a_data_url_becomes_data() -> None:
    block = png()
    url = f"data:image/png;base64,{block.data}"
    assert await made(ImageBlock(url=url)) == block
    assert await reason(ImageBlock(url="data:image/png;base64,?")) == "its data cannot be decoded"


WITHOUT_PILLOW = """
import anyio
from callboard import ImageBlock
from callboard_mixins import MediaPolicy
from callboard_mixins.media.soundness import sound
for data in ("iVBORw0KGgo=", "Qk0="):
    made = anyio.run(sound, ImageBlock(media_type="image/png", data=data), MediaPolicy(), None)
    print(made)
"""


def test_without_pillow_only_what_is_small_and_usual_is_sent() -> None:
    png_told, bitmap_told = run_without("PIL", WITHOUT_PILLOW).stdout.splitlines()
    assert png_told.startswith("ImageBlock(")
    assert "Pillow is not installed" in bitmap_told


@pytest.mark.parametrize(
    "wrong", [{"longest_side": 0}, {"roots": "/"}, {"roots": ["/none/at/all"]}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        MediaPolicy(**wrong)


def test_media_are_named_by_many_words() -> None:
    assert named_in("Invalid image_url: no vision") == {"image"}
    assert named_in("input_audio is not supported") == {"audio"}
    assert named_in("PDF documents are not supported") == {"file"}
    assert named_in("unsupported content") == frozenset()


BLOCKS = st.lists(st.one_of(st.text("ab", min_size=1), st.sampled_from(["image", "audio"])))


@given(BLOCKS)
def test_each_run_becomes_one_line_and_nothing_else_changes(kinds: list[str]) -> None:
    media = {"image": Omitted("image", "no"), "audio": Omitted("audio", "no")}
    blocks = [media.get(kind) or TextBlock(text=kind) for kind in kinds]
    made = with_placeholders(blocks)
    lines = [block.text for block in made if block.text.startswith("[")]
    assert len(lines) == sum(kind in media for kind, _ in groupby(kinds))
    assert [b.text for b in made if b.text not in lines] == [k for k in kinds if k not in media]
    assert sum(int(n) if n.isdigit() else 1 for n in [line[1:].split()[0] for line in lines]) == (
        sum(kind in media for kind in kinds)
    )
