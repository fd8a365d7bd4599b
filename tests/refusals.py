"""What a test asks of a refusal: its class, the place it names, values it must tell; never its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from draft_ladder.base.errors import InputError


@contextmanager
def refused(where: object, *values: object) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """An InputError in one line, whose place holds `where`, and whose text holds each of the values."""
    with pytest.raises(InputError) as caught:
        yield caught
    error = caught.value
    assert str(where) in error.where, error
    assert all(str(value) in str(error) for value in values), error
    assert error.problem
    assert error.remedy
    assert "\n" not in str(error)
