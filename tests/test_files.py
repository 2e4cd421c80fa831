"""Files that appear whole or not at all."""

import errno
import io
import os
import stat
from pathlib import Path

import pytest

from irrun.files import Unwritten, read_most, temporary, whole_file, whole_pair


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


def test_a_folder_that_is_not_there_is_told_by_the_name_of_the_file(tmp_path):
    path = tmp_path / "nowhere" / "out"
    with pytest.raises(FileNotFoundError) as one:
        write(path)
    with pytest.raises(FileNotFoundError) as two, whole_pair(path.with_name("other"), path):
        pass
    assert one.value.filename == two.value.filename == str(path)


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_whatever_goes_wrong_leaves_the_old_file_and_nothing_else(error, tmp_path):
    (tmp_path / "out").write_text("old")
    with pytest.raises(type(error)):
        write(tmp_path / "out", error=error)
    assert (tmp_path / "out").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize("name", ["n" * 250, "長" * 83], ids=["ascii", "three bytes each"])
def test_a_long_name_has_room_for_the_temporary_one(name, tmp_path):
    write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"new"


def test_the_permissions_that_other_threads_give_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("it holds for the whole process"))
    write(tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o600 == 0o600


def test_a_link_stays_one_and_may_lead_to_nothing_yet(tmp_path):
    (tmp_path / "link").symlink_to("out")
    for content in (b"first", b"second"):
        write(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "out").read_bytes() == content


def test_a_link_that_leads_to_itself(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        write(tmp_path / "loop")
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_device_is_an_error_and_stays_a_device():
    with pytest.raises(OSError, match="No space left"):
        write(Path("/dev/full"))
    assert Path("/dev/full").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_disk_that_has_no_room_for_the_end_of_a_file_leaves_nothing_of_two(tmp_path):
    def fill(full):
        with whole_pair(tmp_path / "one", tmp_path / "two") as streams:
            for stream in streams:
                stream.write(b"held back")
                os.dup2(full.fileno(), stream.fileno())
            raise KeyError

    with open("/dev/full", "wb") as full, pytest.raises(KeyError):  # noqa: PTH123
        fill(full)
    assert list(tmp_path.iterdir()) == []


def test_a_file_keeps_its_permissions(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(0o600)
    write(tmp_path / "one")
    with whole_pair(tmp_path / "one", tmp_path / "two") as streams:
        for stream in streams:
            stream.write(b"both")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("one", "two")] == [0o600, 0o600]


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="the system has no /dev/null")
def test_a_device_has_no_places_to_seek():
    with whole_file(Path("/dev/null")) as stream:
        stream.write(b"new")
        assert not stream.seekable()
        with pytest.raises(OSError, match="no places"):
            stream.tell()


@pytest.mark.parametrize("size", [0, 1, (1 << 24) - 1, 1 << 24, (1 << 25) + 1])
@pytest.mark.parametrize("most", [0, 1, 1 << 24, (1 << 24) + 1, 1 << 30])
def test_what_is_read_is_all_that_there_is_up_to_a_size(size, most):
    content = os.urandom(1024) * (size // 1024 + 1)
    assert read_most(io.BytesIO(content[:size]), most) == content[: min(size, most)]


def test_no_memory_is_asked_for_that_is_not_needed():
    class Stream(io.BytesIO):
        def read(self, size):
            assert size <= 1 << 24
            return super().read(size)

    assert read_most(Stream(b"little"), 1 << 40) == b"little"


def test_a_temporary_folder_that_is_not_written_is_told_and_why(monkeypatch):
    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", lambda: "/there")
    with (
        pytest.raises(Unwritten, match=r"^the temporary folder /there cannot be written: full$") as raised,
        temporary(),
    ):
        raise OSError(errno.ENOSPC, "full", "/there/file")
    assert raised.value.errno == errno.ENOSPC
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    with pytest.raises(Unwritten, match=r"^No usable temporary directory found in \['/tmp'\]$"), temporary():
        nowhere()
