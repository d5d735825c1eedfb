"""What pydantic allows, in words of a person. Definitions and the API's bad input are told with it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from pydantic_core import ErrorDetails

_FIELDS: Final = "fields, each as `name: value`"
_LIST: Final = "a list: [a, b]"
_WHOLE: Final = "a whole number"
_WORDS: Final = {
    "dict_type": _FIELDS,
    "model_type": _FIELDS,
    "model_attributes_type": _FIELDS,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "string_type": "text",
    "string_too_short": "longer text",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "missing": "a value: the field is required",
    "extra_forbidden": "no such field",
    "json_invalid": "JSON",
}


def allowed_by(details: ErrorDetails) -> str:
    """Return what is allowed where this error stands."""
    said = details["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return _WORDS.get(details["type"], said)


def nearest(word: str, allowed: Iterable[str]) -> str:
    """The words that are allowed, with the one that was probably meant in front."""
    words = [str(each) for each in allowed]
    close = get_close_matches(word, words, n=1, cutoff=0.6)
    known = ", ".join(words)
    return f"{close[0]} (did you mean that?), or one of {known}" if close else known
