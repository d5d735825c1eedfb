from __future__ import annotations

from pathlib import Path

from daytwo.agent.identity import boot_id, dmi


def test_the_firmware_is_asked(tmp_path: Path) -> None:
    for file, value in {"product_uuid": "4c4c4544\n", "product_serial": "S1\n", "product_name": "HGX\n"}.items():
        (tmp_path / file).write_text(value)
    assert dmi(tmp_path) == {"system_uuid": "4c4c4544", "serial": "S1", "product": "HGX"}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "product_name").write_text("\n")
    assert dmi(tmp_path) == {}


def test_a_boot_has_an_id() -> None:
    assert len(boot_id()) == 36
