"""Token ids as text that people can read."""

from __future__ import annotations

from collections.abc import Iterable

from transformers import PreTrainedTokenizerBase

from batchspec.errors import DecodeError

_UNREADABLE = "\ufffd"


def prompt_ids(tokenizer: PreTrainedTokenizerBase, text: str, chat: bool) -> list[int]:
    """The ids of a prompt.

    Args:
        tokenizer: of the target.
        text: the prompt.
        chat: whether it is a person's turn, which the chat template surrounds. The template then
            writes every special token, so that none comes twice.

    Raises:
        DecodeError: the template cannot take it.
    """
    if not chat:
        return list(tokenizer(text)["input_ids"])
    turns = [{"role": "user", "content": text}]
    try:
        written = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    except Exception as error:  # a template is a program that anybody wrote
        raise DecodeError(
            f"The chat template of this pair fails ({type(error).__name__}: {error!s:.80}): "
            "switch chat off."
        ) from error
    return list(tokenizer(written, add_special_tokens=False)["input_ids"])


def token_texts(tokenizer: PreTrainedTokenizerBase | None, ids: Iterable[int]) -> dict[int, str]:
    """The text of each id; its bytes, as `<E2 82>`, where it is a fragment of a character."""
    return {token: _token_text(tokenizer, token) for token in sorted(ids)}


def running_text(tokenizer: PreTrainedTokenizerBase | None, tokens: list[int]) -> str:
    """The text of a row, without a character at its end that is still incomplete."""
    if tokenizer is None:
        return " ".join(map(str, tokens))
    return str(tokenizer.decode(tokens, skip_special_tokens=True)).rstrip(_UNREADABLE)


def _token_text(tokenizer: PreTrainedTokenizerBase | None, token: int) -> str:
    if tokenizer is None:
        return str(token)
    piece = tokenizer.convert_ids_to_tokens([token])[0]
    if piece is None:  # an id of a padded vocabulary that the tokenizer does not know
        return f"<{token}>"
    text = str(tokenizer.decode([token]))
    if _UNREADABLE in text:
        characters = (_BYTE_OF.get(character) for character in piece)
        text = "<" + " ".join(f"{byte:02X}" for byte in characters if byte is not None) + ">"
    elif piece.startswith("\u2581") and not text.startswith(" "):
        text = " " + text  # SentencePiece drops the space of a token decoded alone
    return text


def _byte_characters() -> dict[str, int]:
    """Byte-level BPE writes every byte as a printable character; this reads it back."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    table = {chr(byte): byte for byte in shown}
    return table | {chr(256 + place): byte for place, byte in enumerate(hidden)}


_BYTE_OF = _byte_characters()
