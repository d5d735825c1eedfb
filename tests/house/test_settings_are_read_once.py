"""What the environment may say, and what a wrong variable is told."""

from __future__ import annotations

import pytest

from daytwo import settings
from daytwo.domain.errors import BadInput


def test_everything_follows_from_the_state_folder() -> None:
    found = settings.load({"DAYTWO_STATE_DIR": "/srv/daytwo"})
    assert (found.store_url, str(found.service_socket)) == (
        "sqlite:////srv/daytwo/daytwo.db",
        "/srv/daytwo/service.sock",
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DAYTWO_STATE_DIR", "here", "DAYTWO_STATE_DIR: found 'here'; allowed is an absolute path"),
        (
            "DAYTWO_GATEWAY_URL",
            "ftp://g",
            "DAYTWO_GATEWAY_URL: found a URL of scheme 'ftp'; allowed is one that starts with http",
        ),
        ("DAYTWO_STORE_URL", "mysql://u:secret@h/d", "DAYTWO_STORE_URL: found a URL of scheme 'mysql'"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(name: str, value: str, says: str) -> None:
    with pytest.raises(BadInput) as problem:
        settings.load({name: value})
    assert str(problem.value).startswith(says)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("value", ["soon", "0", "-1", "inf", "99999"])
def test_a_duration_that_makes_no_sense_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match="DAYTWO_SEND_SECONDS"):
        settings.seconds("DAYTWO_SEND_SECONDS", 10.0, {"DAYTWO_SEND_SECONDS": value})
