"""Files that appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from irrun.files import whole_file


def write(path, content=b"new", error=None):
    with whole_file(path) as stream:
        stream.write(content)
        if error:
            raise error


def test_a_file_appears_with_the_usual_permissions(tmp_path):
    write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~mask
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_whatever_goes_wrong_leaves_the_old_file_and_nothing_else(error, tmp_path):
    (tmp_path / "out").write_text("old")
    with pytest.raises(type(error)):
        write(tmp_path / "out", error=error)
    assert (tmp_path / "out").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_long_name_has_room_for_the_temporary_one(tmp_path):
    write(tmp_path / ("n" * 250))
    assert (tmp_path / ("n" * 250)).read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_device_is_an_error_and_stays_a_device():
    with pytest.raises(OSError, match="No space left"):
        write(Path("/dev/full"))
    assert Path("/dev/full").is_char_device()
