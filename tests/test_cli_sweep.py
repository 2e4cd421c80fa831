"""irrun sweep as a process: what is written, kills of all kinds, clusters, and wrong use."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import COMMAND, irrun
from lxml import etree
from tools.sweep.trouble import SEGFAULT, WAIT, ops, trouble, twice

SAMPLES = Path(__file__).parents[1] / "samples"
INPUTS = "{folder}/inputs*.npz"


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def what(path):
    """What of rows does not depend on who has computed them, and when."""
    return sorted(
        (row["do"], row["model"], row["inputs"], row["device"], row["status"], row["key"]) for row in rows(path)
    )


def test_models_inputs_and_devices_are_summed_up(tmp_path):
    models = [SAMPLES / "cnn", SAMPLES / "stateful-loop"]
    options = ["--do", "validate,execute,compare", "--inputs", INPUTS, "--against", "engine:numpy", "--jobs", 2]
    output = tmp_path / "rows.jsonl"
    done = irrun("sweep", *models, *options, "-o", output)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["do", "device", "tasks", "ok", "mean", "s", "longest", "s"]
    assert [line.split()[:-2] for line in lines[1:4]] == [
        ["validate", "2", "2"],
        ["execute", "auto", "2", "2"],
        ["compare", "engine:numpy", "2", "2"],
    ]
    assert lines[-1].startswith("6 tasks: 6 ok; 6 done in ")
    assert lines[-1].endswith("s on 2 workers")
    assert list(rows(output)[0]) == [
        *(
            "model",
            "inputs",
            "device",
            "do",
            "status",
            "reason",
            "code",
            "cause",
            "seconds",
            "metrics",
            "key",
            "versions",
        )
    ]
    again = irrun("sweep", *models, *options, "-o", output)
    assert again.stdout.splitlines()[-1] == "6 tasks: 6 ok; nothing to do, all rows were there"


def test_faults_are_told_as_junit_and_as_a_page(tmp_path):
    twice(tmp_path / "good", 2)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.xml").write_text("<net")
    trouble(tmp_path / "crashing", SEGFAULT)
    junit, page = tmp_path / "junit.xml", tmp_path / "page.html"
    options = ["--do", "execute", "--random", 1, "--ops", ops(tmp_path), "--jobs", 1]
    done = irrun("sweep", tmp_path / "good", tmp_path / "broken" / "model.xml", *options, "--junit", junit, status=1)
    assert f"error[E101]: execute {tmp_path}/broken/model.xml, random 1, auto: " in done.stdout
    root = etree.parse(junit).getroot()
    assert dict(root.attrib) | {"time": ""} == {
        "name": "irrun sweep",
        "tests": "2",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
        "time": "",
    }
    written = irrun("sweep", tmp_path / "good", "--do", "validate", "--junit", "-")
    assert etree.fromstring(written.stdout.encode()).get("tests") == "1"
    assert "1 task: 1 ok; " in written.stderr
    assert [case.get("name") for case in root.iter("testcase")] == ["execute auto random 1"] * 2
    options[2:4] = ["--inputs", tmp_path / "crashing" / "inputs0.npz"]
    done = irrun("sweep", tmp_path / "crashing", *options, "--matrix", page, "--junit", junit, status=3)
    assert "crashed: execute" in done.stdout
    assert "its process was ended by SIGSEGV, 2 times" in page.read_text()
    assert etree.parse(junit).getroot().get("errors") == "1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--do", "run"], "`run` is none of validate, inspect, execute, compare"),
        (["--do", "compare", "--random", 1], "--do compare needs --against OTHER"),
        (["--do", "validate", "--random", 1], "go with --do execute and compare"),
        (["--do", "execute", "--inputs", "{folder}/none*.npz"], "no file of inputs matches"),
        (["--do", "execute", "-o", "rows.csv"], "rows.csv ends in neither of .jsonl and .parquet"),
        (["--do", "validate", "--junit", "-", "--matrix", "-"], "cannot both go to standard output"),
        (["a.npz", "--do", "execute"], "a.npz is no model: quote the pattern of --inputs"),
        (["--do", "validate", "--jobs", "0"], "`0` is no number of processes, dask://HOST:PORT or local-cluster"),
        (["--do", "validate", "-o", "there/is/no.jsonl"], "there is no folder there/is"),
        (["--do", "compare", "--against", "ov:CPU", "--tol", "x", "--random", 1], "--tol"),
    ],
)
def test_wrong_use(tmp_path, options, said):
    done = irrun("sweep", SAMPLES / "cnn", *options, status=2, cwd=tmp_path)
    assert said in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_installed_is_said_before_anything_is_done(tmp_path):
    missing = [
        ("distributed", ["--jobs", "local-cluster"], "irrun[dask]"),
        ("pyarrow", ["-o", tmp_path / "rows.parquet"], "irrun[parquet]"),
        ("jinja2", ["--matrix", tmp_path / "page.html"], "irrun[report]"),
    ]
    for package, options, said in missing:
        if find_spec(package) is None:
            assert said in irrun("sweep", SAMPLES / "cnn", "--do", "validate", *options, status=2).stderr


@pytest.fixture
def waiting(tmp_path):
    """The arguments of a sweep of 12 tasks that take a quarter of a second each."""
    for name in "abc":
        trouble(tmp_path / name, *[WAIT] * 4, name=name)
    options = ["--do", "execute", "--inputs", INPUTS, "--ops", ops(tmp_path), "--jobs", 2]
    return ["sweep", *(tmp_path / name for name in "abc"), *options, "-o", tmp_path / "rows.jsonl"]


def begun(arguments, output, count):
    """The process of a sweep that has written so many rows."""
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and (not output.exists() or output.read_bytes().count(b"\n") < count):
        time.sleep(0.02)
    return process


def children(pid):
    """The processes that the threads of one have started."""
    return [int(text) for path in Path(f"/proc/{pid}/task").glob("*/children") for text in path.read_text().split()]


def test_a_killed_sweep_goes_on_and_its_workers_end(tmp_path, waiting):
    output = tmp_path / "rows.jsonl"
    with begun(waiting, output, 1) as process:
        workers = children(process.pid)
        process.kill()
    before = rows(output)
    assert 1 <= len(before) < 12
    assert len(workers) == 2
    with output.open("ab") as stream:
        stream.write(b'{"model": "torn')
    done = irrun(*waiting)
    assert f"{12 - len(before)} done in" in done.stdout
    assert f"{len(before)} were there" in done.stdout
    assert len({row["key"] for row in rows(output)}) == 12
    assert all(row["status"] == "ok" for row in rows(output))
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in workers):
            break
        time.sleep(0.1)
    else:
        raise AssertionError("workers outlive the sweep")


def test_a_killed_worker_loses_nothing(tmp_path, waiting):
    output = tmp_path / "rows.jsonl"
    with begun(waiting, output, 1) as process:
        os.kill(children(process.pid)[0], signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    assert b"12 tasks: 12 ok; 12 done in" in stdout
    assert len({row["key"] for row in rows(output)}) == len(rows(output)) == 12


def test_an_interruption_leaves_what_was_done_and_no_processes(tmp_path, waiting):
    output = tmp_path / "rows.jsonl"
    with begun(waiting, output, 1) as process:
        workers = children(process.pid)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, b"interrupted\n")
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert 1 <= len(rows(output)) < 12


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler of dask in a process of its own, with two workers in theirs, and these."""
    pytest.importorskip("distributed")
    address = tmp_path / "scheduler.json"
    python = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    file = ["--scheduler-file", str(address)]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = [*python, "distributed.cli.dask_scheduler", *options, *file]
    worker = [*python, "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny", *file]
    processes = [subprocess.Popen(scheduler, **quiet)]
    try:
        while not address.exists():
            assert processes[0].poll() is None
            time.sleep(0.05)
        processes += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        yield json.loads(address.read_text())["address"].replace("tcp://", "dask://"), processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


def test_a_cluster_gives_the_same_rows_also_when_a_worker_is_killed(tmp_path, cluster, waiting):
    address, processes = cluster
    output, own = tmp_path / "rows.jsonl", tmp_path / "own.jsonl"
    models = [SAMPLES / name for name in ("cnn", "stateful-loop", "transformer-block")]
    plain = ["sweep", *models, "--do", "validate,inspect,execute,compare", "--inputs", INPUTS]
    plain += ["--against", "engine:numpy", "--outputs-only"]
    irrun(*plain, "--jobs", 1, "-o", own)
    done = irrun(*plain, "--jobs", address, "-o", output)
    assert "12 tasks: 12 ok; 12 done in" in done.stdout
    assert what(output) == what(own)
    output.unlink()
    waiting[waiting.index("--jobs") + 1] = address
    with begun(waiting, output, 1) as process:
        processes[1].kill()
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr.decode()
    assert b"12 tasks: 12 ok" in stdout
    assert len({row["key"] for row in rows(output)}) == 12


def test_a_scheduler_that_dies_ends_the_sweep_and_the_next_one_goes_on(tmp_path, cluster, waiting):
    address, processes = cluster
    output, jobs = tmp_path / "rows.jsonl", waiting.index("--jobs") + 1
    waiting[jobs] = address
    with begun(waiting, output, 1) as process:
        processes[0].kill()
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert stderr.startswith(b"error: the executor does no more tasks (")
    assert b"Traceback" not in stderr
    before = len(rows(output))
    waiting[jobs] = 2
    assert f"12 tasks: 12 ok; {12 - before} done in" in irrun(*waiting).stdout


def test_a_worker_of_a_cluster_that_does_not_see_a_model_says_so(tmp_path, cluster):
    address, _ = cluster
    shutil.copytree(SAMPLES / "cnn", tmp_path / "cnn")
    script = (
        "import irrun, sys, shutil; from distributed import Client; from irrun.tools.sweep import sweeping\n"
        "plan, folder = sweeping.plan, sys.argv[2]\n"
        "def planned(*given):\n"
        "    made = plan(*given)\n"
        "    shutil.move(folder, folder + '-gone')\n"  # as a disk is that only this machine has
        "    return made\n"
        "sweeping.plan = planned\n"
        "with Client(sys.argv[1]) as client:\n"
        "    print(irrun.sweep(folder, 'validate', executor=client.get_executor(pure=False)).rows[0])\n"
    )
    arguments = [address.replace("dask", "tcp"), str(tmp_path / "cnn")]
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "status='not done'" in done.stdout
    missing = tmp_path / "cnn" / "model.xml"
    assert f"does not see {missing}: put files where all workers have the same path" in done.stdout


def test_a_scheduler_that_is_not_there_is_wrong_use(tmp_path):
    pytest.importorskip("distributed")
    done = irrun("sweep", SAMPLES / "cnn", "--do", "validate", "--jobs", "dask://127.0.0.1:1", status=2)
    assert "no scheduler of dask answers at 127.0.0.1:1" in done.stderr
