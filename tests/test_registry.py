"""The registry: what a layer's type and version mean, as OpenVINO's reader takes them; custom ops."""

import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from irrun.opsets import TYPES

from irrun.spec import Op
from irrun.spec.registry import Registry, _registry, load_ops, opset_number, register, registry


def nothing():
    """Do nothing."""


@pytest.fixture
def known():
    found = Registry()
    for name in ("ReLU-1", "SoftMax-1", "SoftMax-8", "GRUCell-3"):
        extra = ("experimental", "extension") if name == "GRUCell-3" else ()
        found.add(Op(name, nothing, extension_versions=extra))
    found.add(Op("Xor-1", nothing, opsets=frozenset({1})))
    found.add(Op("Own-1", nothing, opsets=frozenset(), extension_versions=("extension", "mine")))
    return found


def test_the_newest_version_that_an_opset_holds(known):
    assert known.find("SoftMax", "opset4").name == "SoftMax-1"
    assert known.find("SoftMax", "opset8").name == "SoftMax-8"
    assert known.find("SoftMax", "opset16").name == "SoftMax-8"


def test_an_opset_that_does_not_hold_the_type(known):
    assert known.find("GRUCell", "opset2") is None
    assert known.find("Xor", "opset2") is None
    assert known.find("ReLU", "opset17") is None


def test_types_are_looked_up_in_any_case_but_versions_are_not(known):
    assert known.find("RELU", "opset1").name == "ReLU-1"
    assert known.find("Relu", "opset1").name == "ReLU-1"
    assert known.find("ReLU", "Opset1") is None
    assert known.find("ReLU", "opset0") is None
    assert known.find("ReLU", "opset18") is None


def test_old_files_put_some_types_into_other_opsets(known):
    assert known.find("GRUCell", "experimental").name == "GRUCell-3"
    assert known.find("ReLU", "extension") is None


def test_a_custom_op_by_its_own_version(known):
    assert known.find("Own", "extension").name == "Own-1"
    assert known.find("Own", "mine").name == "Own-1"
    assert known.find("Own", "opset1") is None


def test_two_ops_of_one_name(known):
    with pytest.raises(ValueError, match="ReLU-1 is declared twice"):
        known.add(Op("ReLU-1", nothing))


def test_what_is_no_op_is_not_registered():
    with pytest.raises(TypeError, match=r"^what is registered is an op, as the decorator `op` declares it, not 5$"):
        register(5)


def test_harvesting_a_module_takes_its_ops_only():
    module = ModuleType("own")
    module.one = Op("One-1", nothing)
    module.alias = module.one
    module.other = 3
    found = Registry()
    found.harvest(module)
    assert list(found.ops) == ["One-1"]


def test_opset_numbers():
    assert opset_number("opset17") == 17
    assert opset_number("opset18") is None
    assert opset_number("17") is None


def forget_registry():
    registry.cache_clear()
    _registry.cache_clear()


def test_a_user_module_adds_to_the_library(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "from irrun.spec import Input, Op, Output\n"
        "def f(x):\n    'Do it.'\n    return x\n"
        "own = Op('TestRegistryOwn-1', f, [Input('x', 'f32', '[*s]')], [Output('y', 'f32', '[*s]')],\n"
        "         opsets=frozenset(), extension_versions=('extension',))\n"
    )
    forget_registry()  # other tests hold on to the ops of the one that there is
    try:
        load_ops(path)
        assert registry().find("TestRegistryOwn", "extension").version == 1
    finally:
        forget_registry()


def test_the_library_is_loaded_as_far_as_it_is_needed():
    loaded = []

    def loading(name):
        loaded.append(name)
        module = ModuleType("library")
        module.op = Op(name, nothing)
        return module

    names = {"ReLU": "ReLU-1", "Tanh": "Tanh-1", "Xor": "Xor-1"}
    found = Registry(library={type: partial(loading, name) for type, name in names.items()})
    assert found.find("relu", "opset1").name == "ReLU-1"
    assert loaded == ["ReLU-1"]
    assert [op.name for op in found.versions("Tanh")] == ["Tanh-1"]
    assert found.find("Other", "opset1") is None
    assert loaded == ["ReLU-1", "Tanh-1"]
    with pytest.raises(ValueError, match="Xor-1 is declared twice"):
        found.add(Op("Xor-1", nothing))
    assert list(found.ops) == ["ReLU-1", "Tanh-1", "Xor-1"]


@pytest.mark.parametrize("category", TYPES)
def test_a_module_has_the_types_that_it_is_listed_with(category):
    """The registry looks for a type nowhere else."""
    values = vars(import_module(f"irrun.opsets.{category}")).values()
    assert sorted({value.type for value in values if isinstance(value, Op)}) == TYPES[category].split()


def test_installed_packages_are_asked_only_for_unknown_types():
    asked = []

    def installed():
        asked.append(True)
        module = ModuleType("theirs")
        module.op = Op("Theirs-1", nothing)
        yield module

    found = Registry(installed)
    found.add(Op("ReLU-1", nothing))
    assert found.find("ReLU", "opset1").name == "ReLU-1"
    assert not asked
    assert found.find("Theirs", "opset1").name == "Theirs-1"
    assert found.find("Unknown", "opset1") is None
    assert asked == [True]


CONCURRENT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
import irrun

sys.setswitchinterval(1e-6)
models = sorted(Path(sys.argv[1]).glob("*/model.xml"))
start = Barrier(len(models))

def check(path):
    start.wait()
    return [str(d) for d in irrun.validate(path).errors], irrun.validate(path).layers

with ThreadPoolExecutor(len(models)) as pool:
    found = list(pool.map(check, models))
assert len(found) > 5
print([errors for errors, _ in found if errors], min(layers for _, layers in found) > 3)
"""


def test_the_first_checks_of_a_process_may_come_from_many_threads():
    samples = Path(__file__).parents[1] / "samples"
    done = subprocess.run([sys.executable, "-c", CONCURRENT, samples], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] True\n", "")


def test_there_is_one_registry_however_many_ask_first():
    script = (
        "import sys; sys.setswitchinterval(1e-6)\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from irrun.spec.registry import registry\n"
        "with ThreadPoolExecutor(16) as pool:\n"
        "    print(len(set(pool.map(lambda _: registry(), range(16)))))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "1\n"
