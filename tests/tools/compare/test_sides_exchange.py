"""Arrays that go through files between processes: every element type comes back as it was."""

import numpy as np
import pytest

from irrun.spec.dtypes import ELEMENT_TYPES, numpy_dtype
from irrun.tools.compare.sides.exchange import Scratch, Stored, Writer, array_from
from irrun.tools.compare.sides.groups import groups, watch

TYPES = [name for name in ELEMENT_TYPES if name not in ("dynamic", "string", "u3", "u6")]


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 5)])
@pytest.mark.parametrize("type", TYPES)
def test_all_types_come_back(type, shape, tmp_path):
    count, bits = int(np.prod(shape)), ELEMENT_TYPES[type].bits
    codes = np.random.default_rng(5).integers(0, 1 << min(bits, 7), count, np.uint8)
    dtype = numpy_dtype(type)
    plain = type in ("u1", "nf4") or bits >= 8
    array = codes.astype(dtype) if plain else codes.view(np.uint8).astype(np.int8).astype(dtype)
    array = array.reshape(shape)
    found = array_from(Writer(tmp_path, "a").array(array, type))
    assert (found.dtype, found.shape) == (array.dtype, shape)
    assert found.tobytes() == array.tobytes()
    assert not found.flags.writeable


def test_texts_come_back(tmp_path):
    array = np.array([["", "a\nb"], ["\u00fc", '"']])
    found = array_from(Writer(tmp_path, "a").array(array))
    assert found.tolist() == array.tolist()


def test_files_live_as_long_as_what_is_stored_in_them():
    folder = Scratch()
    path = folder.path
    stored = Stored({"a": Writer(path, "t").array(np.float32([1, 2]))}, folder)
    del folder
    array = stored["a"]
    del stored
    assert not path.exists()
    assert array.tolist() == [1, 2]


def test_groups_have_room_for_what_is_in_them():
    assert groups({0: 4, 1: 4, 2: 4, 3: 100, 4: 1, 5: 0}, 8) == [[0, 1], [2], [3], [4, 5]]
    assert [len(group) for group in groups(dict.fromkeys(range(68)), 1024)] == [64, 4]
    assert [len(group) for group in groups({0: 1, 1: 3} | dict.fromkeys(range(2, 155)), 1024)] == [129, 26]


def test_what_cannot_be_watched_is_found_and_the_rest_is_watched():
    seen = []

    def run(group):
        if {2, 5} & set(group):
            raise RuntimeError(f"not {group}")
        seen.extend(group)

    assert watch(dict.fromkeys(range(7), 1), 4, run, lambda: None) == {2: "not [2]", 5: "not [5]"}
    assert seen == [0, 1, 3, 4, 6]


def test_there_is_a_run_even_if_nothing_can_be_watched():
    runs = []

    def run(group):
        runs.append(list(group))
        if group:
            raise RuntimeError("no")

    assert watch({0: 1, 1: 1}, 4, run, lambda: None) == {0: "no", 1: "no"}
    assert runs[-1] == []
    with pytest.raises(ZeroDivisionError):  # which has nothing to do with who watches
        watch({0: 1}, 4, run, lambda: 1 / 0)
