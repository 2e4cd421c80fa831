"""A device of OpenVINO as the other side: `ov:CPU`, `ov:GPU.1`, `ov:HETERO:NPU,CPU`. OpenVINO itself is in a worker."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage
from typing import Any

from irrun.diagnostics import EngineError
from irrun.files import temporary
from irrun.ir.graph import Model, Value
from irrun.ir.writer import write_model
from irrun.records import dataclass
from irrun.spec.dtypes import PRECISIONS
from irrun.spec.op import Array
from irrun.tools.compare.sides.contract import Observation, Options, Runtime, SideFailed, Steps
from irrun.tools.compare.sides.exchange import Scratch, Stored, Stub, Writer
from irrun.tools.compare.sides.failures import explained, shortened
from irrun.tools.compare.sides.observing import observations, tensors_of_steps
from irrun.tools.compare.sides.process import Watch, Worker
from irrun.tools.compare.sides.tensors import bound, declared, keys_of_results, tensors_of, unclear, wanted

WORKER = "irrun.tools.compare.sides.openvino_worker"

FULL = {
    "INFERENCE_PRECISION_HINT": "f32",
    "EXECUTION_MODE_HINT": "ACCURACY",
}
"""What makes a device compute in the types that the model declares; the second one also reaches the caches of
attention and products of weights of few bits."""

TRACING = "OV_ENABLE_SERIALIZE_TRACING"
"""The environment variable that has OpenVINO write an IR after each transformation."""

_TRACED = re.compile(r"Model(\d+)_(\d+)_(.*)\.xml", re.DOTALL)

CACHE = "KV_CACHE_PRECISION"
"""What a device keeps what attention has seen in, which no hint for the precision of computations reaches."""

_SPARE = 512 << 20
"""Bytes of the disk that are left for others while passes write."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A transformation of OpenVINO and the IR that it has left: the `number`-th that was written, from 0 on.

    It is of the graph `model`: of ours as it was read, as the device has it, or of a part that code is generated for.
    """

    number: int
    name: str
    path: Path
    model: int


class OpenvinoSide:
    """A model on a device of OpenVINO.

    `files` are others than those of the model, with the same inputs and outputs, such as those with marks for the
    precision of layers. Raises EngineError where OpenVINO or the device is not there, SideFailed where it crashes.
    """

    kind = "device"

    def __init__(
        self,
        model: Model,
        device: str,
        options: Options,
        files: tuple[Path, Path | None] | None = None,
        owner: OpenvinoSide | None = None,
    ) -> None:
        if find_spec("openvino") is None:
            raise EngineError('OpenVINO is not installed: pip install "irrun[openvino]"')
        self.name = f"ov:{device}"
        self.untapped: dict[str, str] = {}
        self._model, self._device, self._options = model, device, options
        self._owner = owner
        self._kept: list[Scratch] = []
        self._steps: dict[str, Any] | None = None
        self._scratch: Scratch = owner._scratch if owner else Scratch()
        self._worker: Worker = owner._worker if owner else Worker(WORKER, self.name, options.timeout)
        self._tensors, self._unclear = tensors_of(model.graph), unclear(model.graph)
        self._layers = {layer.name: layer for layer in model.graph.layers}
        self._commas = max((name.count(",") for name in self._layers), default=0)
        self._files = files or self._located()
        self._settings: list[str] = owner._settings if owner else self._looked_for()

    def outputs(self, steps: Steps) -> list[Mapping[str, Array]]:
        folder = Scratch(self._scratch.path)
        answer = self._asked("outputs", folder, steps)
        return [self._named(step["outputs"], folder) for step in answer["steps"]]

    def observe(self, steps: Steps, keys: Collection[str] | None = None) -> list[Observation]:
        folder, taps = Scratch(self._scratch.path), self._wanted(keys)
        answer = self._asked("observe", folder, steps, taps=self._taps(taps), max_bytes=self._options.max_bytes)
        names = list(taps)
        self._leave_out(names, answer["untapped"], keys)
        return observations(answer, names, self._named, folder)

    def cut(self, steps: Steps, keys: Collection[str]) -> list[Mapping[str, Array]]:
        folder, taps = Scratch(self._scratch.path), self._wanted(keys)
        answer = self._asked("cut", folder, steps, taps=self._taps(taps))
        names = list(taps)
        self._leave_out(names, answer["untapped"], keys)
        return tensors_of_steps(answer, names, folder)

    @property
    def precision(self) -> str | None:
        said = PRECISIONS.get((self._told_of()["precision"] or "").lower())
        return None if said == "dynamic" else said

    def runtime(self) -> Mapping[str, Runtime]:
        found: dict[str, Runtime] = {}
        for node in self._told_of()["nodes"]:
            names = self._originals(node.get("originalLayersNames", ""))
            precision = PRECISIONS.get(node.get("runtimePrecision", "").lower())
            made = Runtime(None if precision == "dynamic" else precision, node.get("primitiveType"), names)
            for name in names:
                if name not in found or node["name"] == name:
                    found[name] = made
        return found

    def _told_of(self) -> dict[str, Any]:
        """What the device says of its steps, asked once."""
        if self._steps is None:
            self._steps = self._asked("runtime")
        return self._steps

    def precise(self) -> OpenvinoSide | None:
        config = {name: value for name, value in FULL.items() if name in self._settings}
        if not config or config.items() <= self._options.config.items():
            return None
        side = self._derived(replace(self._options, config={**self._options.config, **config}), self._files)
        side.name = f"{self.name} at full precision"
        return side

    def cached_in(self) -> tuple[str, str] | None:
        said = PRECISIONS.get((self._told_of()["cache"] or "").lower())
        return None if said in (None, "dynamic", "f32", "f64") else (str(said), f"{CACHE}=f32")

    def uncompressed(self) -> OpenvinoSide:
        side = self._derived(replace(self._options, config={**self._options.config, CACHE: "f32"}), self._files)
        side.name = f"{self.name} with its cache in f32"
        return side

    def marked(self, path: Path) -> OpenvinoSide:
        """The same device with another file, of the same inputs and outputs; it ends with this side."""
        own = path.with_suffix(".bin")
        return self._derived(self._options, (path, own if own.exists() else self._files[1]))

    def passes(self, pattern: str | None = None) -> list[Pass]:
        """The IR after each transformation while the model is compiled, or after those whose names contain `pattern`.

        The files are there until `close`. Those of a large model take its size hundreds of times: give a pattern.
        """
        folder = Scratch(self._scratch.path)
        self._kept.append(folder)
        worker = Worker(WORKER, self.name, self._options.timeout, {TRACING: pattern or "1"})

        def watch() -> str | None:
            full = disk_usage(folder.path).free < _SPARE
            return "the IRs that are written after each transformation fill the disk" if full else None

        try:
            self._told(worker, self._request("compile"), folder.path, watch)
        finally:
            worker.close()
        found = []
        for path in folder.path.iterdir():
            match = _TRACED.fullmatch(path.name)
            if match is not None:
                found.append(((int(match[2]), int(match[1])), match[3], path))
        return [Pass(number, name, path, at[1]) for number, (at, name, path) in enumerate(sorted(found))]

    def close(self) -> None:
        if self._owner is None:
            self._worker.close()
            self._scratch.close()

    def _derived(self, options: Options, files: tuple[Path, Path | None]) -> OpenvinoSide:
        return OpenvinoSide(self._model, self._device, options, files, self._owner or self)

    def _located(self) -> tuple[Path, Path | None]:
        """The files of the model; one that came from memory, or was changed, is written down. Raises Unwritten."""
        if self._model.edited:
            xml = self._scratch.path / "model.xml"
            with temporary():
                write_model(self._model, xml)
            return xml, xml.with_suffix(".bin")
        weights = self._model.weights
        bin = weights.path if weights.size is not None else None
        if weights.content is not None:
            bin = self._scratch.path / "model.bin"
            with temporary():
                bin.write_bytes(weights.content)
        if self._model.content is None:
            return self._model.path, bin
        xml = self._scratch.path / "model.xml"
        with temporary():
            xml.write_bytes(self._model.content)
        return xml, bin

    def _looked_for(self) -> list[str]:
        """What can be set for the device. Raises EngineError where it is not there."""
        try:
            answer = self._told(self._worker, {"do": "device", "device": self._device})
            if answer["problem"] is not None:
                listing = ", ".join(answer["devices"]) or "none"
                raise EngineError(
                    f"there is no device `{self._device}`; there are {listing} ({shortened(answer['problem'])})"
                )
        except BaseException:
            self.close()
            raise
        return [str(name) for name in answer["settings"]]

    def _request(self, do: str, **more: Any) -> dict[str, Any]:
        xml, bin = self._files
        try:
            status = [path.stat() for path in (xml, bin) if path is not None]
        except OSError as error:
            raise SideFailed(self.name, "read", f"{error.filename} cannot be read: {error.strerror}") from None
        return {
            "do": do,
            "xml": str(xml.absolute()),
            "bin": None if bin is None else str(bin.absolute()),
            "stamp": [[each.st_mtime_ns, each.st_size] for each in status],
            "device": self._device,
            "config": dict(self._options.config),
            "parameters": [layer.name for layer in self._model.graph.parameters],
            "results": [layer.name for layer in self._model.graph.results],
            **more,
        }

    def _asked(self, do: str, folder: Scratch | None = None, steps: Steps = (), **more: Any) -> dict[str, Any]:
        """The worker's answer to a request about these steps, whose files are in the folder."""
        given: list[list[Stub]] = []
        if folder is not None:
            writer = Writer(folder.path, "i")
            types = [declared(layer).type for layer in self._model.graph.parameters]
            for arrays in bound(self._model, steps):
                given.append([writer.array(array, type) for array, type in zip(arrays, types, strict=True)])
            more["folder"] = str(folder.path)
        return self._told(self._worker, self._request(do, steps=given, **more))

    def _told(
        self, worker: Worker, request: dict[str, Any], cwd: Path | None = None, watch: Watch | None = None
    ) -> dict[str, Any]:
        try:
            return worker.call(request, cwd, watch)
        except SideFailed as error:
            raise explained(error, self.name, self._layers) from None

    def _named(self, outputs: Sequence[Stub], folder: Scratch) -> Mapping[str, Array]:
        keys = keys_of_results(self._model)
        if len(keys) != len(outputs):
            raise SideFailed(self.name, "run", f"it has {len(outputs)} outputs, the model {len(keys)}")
        return Stored(dict(zip(keys, outputs, strict=True)), folder)

    def _taps(self, values: Mapping[str, Any]) -> list[list[Any]]:
        return [[value.layer.name, value.layer.type, value.index] for value in values.values()]

    def _wanted(self, keys: Collection[str] | None) -> dict[str, Value]:
        values = wanted(self._tensors, keys)
        return {key: value for key, value in values.items() if key not in self._unclear}

    def _leave_out(self, names: Sequence[str], untapped: Mapping[str, str], keys: Collection[str] | None) -> None:
        """Remember why tensors were not watched."""
        asked = self._unclear if keys is None else [key for key in keys if key in self._unclear]
        self.untapped.update({key: self._unclear[key] for key in asked})
        self.untapped.update({names[int(number)]: shortened(reason) for number, reason in untapped.items()})

    def _originals(self, text: str) -> tuple[str, ...]:
        """Names of our layers out of a list of names, which may have commas in them, and be of nobody's layers."""
        parts, found, begin = text.split(","), list[str](), 0
        while begin < len(parts):
            for end in range(min(len(parts), begin + self._commas + 1), begin, -1):
                name = ",".join(parts[begin:end])
                if name in self._layers:
                    found.append(name)
                    begin = end
                    break
            else:
                begin += 1
        return tuple(found)
