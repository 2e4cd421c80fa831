"""What a deployment engineer does in a day, on two models: run it from the root of the repository.

    python samples/day.py

Every line of it is public API. What it prints stands in day.txt.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np

import irrun
from irrun.spec import FLOAT, Array, Input, Output, op

SAMPLES = Path(__file__).parent
CNN, LOOP = SAMPLES / "cnn", SAMPLES / "stateful-loop"


@op(
    "Scale-1",
    types={"T": FLOAT},
    inputs=[Input("data", "T", "[N, *rest]"), Input("factors", "T", "[N]")],
    outputs=[Output("scaled", "T", "[N, *rest]")],
    opsets=frozenset(),
    extension_versions=("extension",),
)
def scale(data: Array, factors: Array) -> Array:
    """Multiply each row by its factor."""
    return data * factors.reshape(-1, *[1] * (data.ndim - 1))


SCALED = """<net name="scaled" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="2,3"/>
 <output><port id="0" precision="FP32" names="x"><dim>2</dim><dim>3</dim></port></output></layer>
<layer id="1" name="k" type="Parameter" version="opset1"><data element_type="f32" shape="2"/>
 <output><port id="0" precision="FP32" names="k"><dim>2</dim></port></output></layer>
<layer id="2" name="scale" type="Scale" version="extension">
 <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>
  <port id="1" precision="FP32"><dim>2</dim></port></input>
 <output><port id="2" precision="FP32" names="y"><dim>2</dim><dim>3</dim></port></output></layer>
<layer id="3" name="result" type="Result" version="opset1">
 <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
</edges></net>"""


def probabilities(executor: irrun.GraphExecutor, seed: int) -> Array:
    return executor.run(executor.random_inputs(seed))["probabilities"]


def main() -> None:
    print("-- what is this model?")
    model = irrun.read_model(CNN / "model.xml")
    executor = irrun.GraphExecutor(model)
    for tensor in executor.inputs + executor.outputs:
        print(tensor.name, tensor, tensor.dtype)

    print("-- does it give what it gave before?")
    with np.load(CNN / "inputs.npz") as inputs, np.load(CNN / "expected.npz") as expected:
        outputs = executor.run(dict(inputs))
        print(all(np.allclose(outputs[name], expected[name], 1e-4, 1e-6) for name in expected))

    print("-- an input that is laid out otherwise")
    image = executor.random_inputs(7, {"image": (2, 3, 16, 16)})["image"]
    try:
        executor.run(image.transpose(0, 2, 3, 1))
    except irrun.InputError as error:
        print(error)

    print("-- a tensor from the middle, and all of one kind")
    dump = irrun.Dump(types=["ReLU", "MatMul"])
    executor.run(image, observer=dump)
    for name, array in dump.items():
        print(name, array.shape)
    middle = next(iter(dump))
    part = executor.run(image, outputs=[middle])
    print(np.allclose(part[middle], dump[middle], 1e-5, 1e-6))

    print("-- many inputs, in threads and in processes")
    here = [probabilities(executor, seed) for seed in range(4)]
    with ThreadPoolExecutor(2) as threads:
        there = list(threads.map(lambda seed: probabilities(executor, seed), range(4)))
        print(all(map(np.array_equal, here, there)))
    with ProcessPoolExecutor(2) as processes:
        there = [task.result() for task in [processes.submit(probabilities, executor, seed) for seed in range(4)]]
        print(all(np.allclose(a, b, 1e-5) for a, b in zip(here, there, strict=True)))

    print("-- a model with a state, for two users")
    loop = irrun.GraphExecutor(LOOP / "model.xml")
    print([f"{variable.name}: {variable}" for variable in loop.variables])
    one, other = loop.session(), loop.session()
    x = np.array([[0.1, -0.2, 0.3, 0.4]], np.float32)
    first = one.run(x=x, steps=3)["hidden"]
    print(np.array_equal(other.run(x=x, steps=3)["hidden"], first), np.array_equal(one.run(x=x, steps=3)[0], first))

    print("-- an operation of our own, in a model from memory")
    irrun.register(scale)
    scaled = irrun.GraphExecutor(SCALED.encode())
    print(scaled.run(x=[[1, 2, 3], [4, 5, 6]], k=[2, -1])["y"].tolist())

    print("-- a model that somebody broke")
    report = irrun.validate(SCALED.replace('shape="2"', 'shape="3"').encode())
    print(report.ok, [(error.code, error.line) for error in report.errors])
    print(report)


if __name__ == "__main__":
    main()
