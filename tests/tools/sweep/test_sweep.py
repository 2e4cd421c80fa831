"""irrun.sweep: keys by content, rows that last, executors of all kinds, and tasks that crash and hang."""

import json
import multiprocessing
import os
import shutil
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ir_builder import Model

import irrun
from irrun.tools.sweep import course, performing
from irrun.tools.sweep.course import Lost
from irrun.tools.sweep.log import Log
from irrun.tools.sweep.matrix import render_matrix
from irrun.tools.sweep.performing import Batch, perform
from irrun.tools.sweep.rows import Row
from irrun.tools.sweep.summary import text
from irrun.tools.sweep.tasks import Settings, plan
from tools.sweep.trouble import FINE, HANG, MEMORY, SEGFAULT, ops, trouble, twice

INPUTS = "{folder}/inputs*.npz"


@pytest.fixture(scope="module")
def sweep():
    """irrun.sweep by one worker for all tests, as far as they are not about workers."""
    with ThreadPoolExecutor(1) as pool:
        yield partial(irrun.sweep, executor=pool)
    performing._WORKERS[-1].close()


def outcome(found):
    return [(Path(row.model).parent.name, Path(row.inputs).stem, row.do, row.status) for row in found.rows]


@pytest.fixture
def pair(tmp_path):
    twice(tmp_path / "a", 2)
    twice(tmp_path / "b", 3)
    return tmp_path


def test_rows_are_in_the_order_of_models_then_of_what_is_done_then_of_inputs(pair):
    found = irrun.sweep(pair, ["validate", "execute"], INPUTS, jobs=2)
    assert outcome(found) == [
        (name, inputs, do, "ok")
        for name in ("a", "b")
        for do, inputs in (("validate", ""), ("execute", "inputs0"), ("execute", "inputs1"))
    ]
    assert found.done == 6
    assert found.rows[1].metrics["outputs"] == 1


def test_a_model_without_files_of_inputs_is_run_on_the_others(pair, sweep):
    for path in (pair / "b").glob("*.npz"):
        path.unlink()
    found = sweep(pair, "execute", INPUTS, seeds=[1])
    assert [(name, status) for name, _, _, status in outcome(found)] == [("a", "ok")] * 3 + [("b", "ok")]
    found = sweep(pair, "execute", INPUTS)
    assert [status for _, _, _, status in outcome(found)] == ["ok", "ok", "error"]
    assert "no array for input" in found.rows[-1].reason


def test_a_second_call_does_nothing(pair, sweep):
    output = pair / "rows.jsonl"
    first = sweep(pair, ["inspect", "execute"], INPUTS, output=output)
    content = output.read_bytes()
    second = sweep(pair, ["inspect", "execute"], INPUTS, output=output)
    assert (first.done, second.done, second.known) == (6, 0, 6)
    assert second.rows == first.rows
    assert output.read_bytes() == content
    assert "nothing to do, all rows were there" in text(second)


def test_what_has_changed_is_done_again_and_replaces_its_row(pair, sweep):
    output = pair / "rows.jsonl"
    sweep(pair, "execute", INPUTS, output=output)
    np.savez(pair / "a" / "inputs1.npz", x=np.float32([7, 7, 7]))
    (pair / "b" / "model.bin").write_bytes(np.float32([5]).tobytes())
    found = sweep(pair, "execute", INPUTS, output=output)
    assert found.done == 3
    assert len(output.read_text().splitlines()) == 4
    assert sweep(pair, "execute", INPUTS, output=output, precision="f64").done == 4


def test_a_file_that_was_only_touched_or_renamed_is_not_done_again(pair, sweep):
    output = pair / "rows.jsonl"
    sweep(pair, "execute", INPUTS, output=output)
    os.utime(pair / "a" / "model.bin", (1, 1))
    (pair / "b").rename(pair / "c")
    found = sweep(pair, "execute", INPUTS, output=output)
    assert found.done == 0
    assert {(name, status) for name, _, _, status in outcome(found)} == {("a", "ok"), ("c", "ok")}


def test_a_model_that_was_written_to_is_made_ready_again(pair, sweep):
    weights = pair / "a" / "model.bin"
    for factor in (2, 7, 2):  # and back
        weights.write_bytes(np.float32([factor]).tobytes())
        found = sweep(pair / "a" / "model.xml", "execute", INPUTS)
        assert found.counts == {"ok": 2}
        assert found.rows[0].metrics["prepare"] > 0


def test_the_same_content_is_computed_once_and_reported_for_all_paths(pair, sweep):
    shutil.copytree(pair / "a", pair / "copy")
    found = sweep(pair, "execute", INPUTS, output=pair / "rows.jsonl")
    assert (len(found.rows), found.done) == (6, 4)
    assert outcome(found)[4:] == [("copy", "inputs0", "execute", "ok"), ("copy", "inputs1", "execute", "ok")]
    assert [row.key for row in found.rows[:2]] == [row.key for row in found.rows[4:]]
    written = [Row.from_dict(json.loads(line)) for line in (pair / "rows.jsonl").read_text().splitlines()]
    assert {row.place for row in written} == {row.place for row in found.rows}


def test_crashes_hangs_and_lack_of_memory_are_rows(tmp_path):
    trouble(tmp_path / "bad", FINE, SEGFAULT, FINE, HANG, MEMORY, FINE)
    settings = {"timeout": 2.0, "ops": [ops(tmp_path)]}
    found = irrun.sweep(tmp_path, "execute", INPUTS, output=tmp_path / "rows.jsonl", jobs=1, **settings)
    assert [row.status for row in found.rows] == ["ok", "crashed", "ok", "timed out", "error", "ok"]
    assert [row.reason for row in found.rows if row.status != "ok"] == [
        "its process was ended by SIGSEGV, 2 times",
        "it took longer than 2 s",
        "line 10: Trouble-1 ran out of memory",
    ]
    again = irrun.sweep(tmp_path, "execute", INPUTS, output=tmp_path / "rows.jsonl", jobs=1, **settings)
    assert again.done == 0
    longer = settings | {"timeout": 2.1}
    assert irrun.sweep(tmp_path, "execute", INPUTS, output=tmp_path / "rows.jsonl", jobs=1, **longer).done == 1


def test_a_task_that_no_signal_reaches_is_ended_with_its_process(tmp_path, monkeypatch):
    monkeypatch.setattr(performing, "_GRACE", 1.0)
    script = tmp_path / "deaf.py"
    blocked = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n        time.sleep(600)"
    script.write_text(ops(tmp_path).read_text().replace("time.sleep(600)", blocked))
    trouble(tmp_path / "bad", HANG)
    found = irrun.sweep(tmp_path, "execute", INPUTS, jobs=1, timeout=2.0, ops=[script])
    assert [(row.status, row.reason) for row in found.rows] == [("timed out", "it took longer than 2 s")]


def test_a_worker_prepares_a_model_once_for_all_of_its_inputs(tmp_path):
    model = twice(tmp_path / "a", 2)
    found = irrun.sweep(model, "execute", seeds=range(40), jobs=2)
    prepared = [row.metrics["prepare"] for row in found.rows]
    assert 1 <= sum(seconds > 0 for seconds in prepared) <= 2


def test_folders_may_have_any_names(tmp_path, sweep):
    folder = tmp_path / "a [b]* {name} 'q\" \udcff\nline"
    twice(folder / "x", 2)
    output = folder / "rows.jsonl"
    found = sweep(folder / "x" / "model.xml", "execute", INPUTS, output=output)
    assert found.counts == {"ok": 2}
    assert sweep(folder / "x" / "model.xml", "execute", INPUTS, output=output).done == 0


def test_what_is_no_file_is_a_row(tmp_path, sweep):
    os.mkfifo(tmp_path / "pipe.xml")
    found = sweep([tmp_path / "pipe.xml", tmp_path / "nowhere.xml"], ["validate"])
    assert [(row.status, row.code) for row in found.rows] == [("error", "E103"), ("error", "E102")]


def test_comparisons_are_rows_with_what_differs(pair, sweep):
    sides = ["engine:numpy", "{folder}/../b/model.xml"]
    found = sweep(pair, "compare", INPUTS, against=sides, outputs_only=True, tolerances=["f32"], config={"X": "1"})
    statuses = [row.status for row in found.rows]
    assert statuses == ["ok", "ok", "differs", "differs", "ok", "ok", "ok", "ok"]
    assert found.rows[2].cause.startswith("N2")
    assert found.rows[2].metrics["max_abs"] == 2


def test_a_model_and_inputs_at_fault_are_rows_with_a_code(tmp_path, pair, sweep):
    np.savez(pair / "a" / "inputs1.npz", y=np.float32([1]))
    (pair / "b" / "model.xml").write_text("<net")
    found = sweep(pair, ["validate", "execute"], INPUTS)
    assert [row.status for row in found.rows] == ["ok", "ok", "error", "error", "error", "error"]
    assert "`y`" in found.rows[2].reason
    assert found.rows[3].code == "E101"


def test_a_pool_of_processes_gives_the_same_rows(pair, sweep):
    known = sweep(pair, ["validate", "execute"], INPUTS)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as executor:
        found = irrun.sweep(pair, ["validate", "execute"], INPUTS, executor=executor)
    assert outcome(found) == outcome(known)
    assert [row.key for row in found.rows] == [row.key for row in known.rows]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_copy_of_a_process_has_workers_of_its_own(pair, sweep):
    known = sweep(pair, "execute", INPUTS)
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as executor:
        found = irrun.sweep(pair, "execute", INPUTS, executor=executor)
    assert outcome(found) == outcome(known)
    assert sweep(pair, "execute", INPUTS).counts == {"ok": 4}


def die(batches, most):
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_executor_that_breaks_is_said_so_and_the_next_call_goes_on(pair, monkeypatch):
    monkeypatch.setattr("irrun.tools.sweep.sweeping.perform", die)
    output = pair / "rows.jsonl"
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor,
        pytest.raises(Lost, match="same call"),
    ):
        irrun.sweep(pair, "execute", INPUTS, executor=executor, output=output)
    monkeypatch.undo()
    assert irrun.sweep(pair, "execute", INPUTS, output=output, jobs=1).counts == {"ok": 4}


class Losing(ThreadPoolExecutor):
    """Loses whatever has a task with `inputs0`, as a scheduler does whose workers die of it."""

    def submit(self, function, batches, most):
        if any("inputs0" in inputs for batch in batches for inputs, _ in batch.inputs):
            future = Future()
            future.set_exception(RuntimeError("KilledWorker"))
            return future
        return super().submit(function, batches, most)


def test_what_an_executor_loses_is_sent_alone_and_then_a_row(pair):
    with Losing(1) as executor:
        found = irrun.sweep(pair, "execute", INPUTS, executor=executor)
    assert [row.status for row in found.rows] == ["crashed", "ok", "crashed", "ok"]
    assert found.rows[0].reason == "the executor lost it: RuntimeError: KilledWorker"


def batch(pair, **changed):
    task = plan([pair / "a" / "model.xml"], ["execute"], [INPUTS]).tasks[0]
    given = Batch("execute", task.model, "auto", ((task.inputs, task.key),), Settings(), task.versions, str(pair))
    return replace(given, **changed)


def done(batch):
    ((row,),) = perform([batch], 1.0)
    return row


def test_a_worker_that_lacks_a_file_or_a_package_says_so(pair):
    assert done(batch(pair)).status == "ok"
    other = done(batch(pair, versions={**batch(pair).versions, "numpy": "0.1"}))
    assert other.status == "not done"
    assert f"has numpy {np.__version__}, the sweep was planned with 0.1" in other.reason
    planned = batch(pair)
    (pair / "a" / "model.bin").write_bytes(b"12345678")
    changed = done(planned)
    assert "sees another" in changed.reason
    (pair / "a" / "model.bin").unlink()
    missing = done(planned)
    assert f"does not see {pair / 'a' / 'model.bin'}: put files where all workers" in missing.reason


def test_what_was_not_done_is_done_by_the_next_call(pair, sweep):
    output = pair / "rows.jsonl"
    task = plan([pair / "a" / "model.xml"], ["execute"], [INPUTS]).tasks[0]
    log = Log(output)
    log.add([Row(task.model.path, task.inputs, task.device, task.do, "not done", key=task.key)])
    log.close()
    found = sweep(pair / "a" / "model.xml", "execute", INPUTS, output=output)
    assert (found.done, found.counts) == (2, {"ok": 2})
    assert "not done" not in output.read_text()


def test_batches_that_take_long_come_back_with_what_they_have(pair, sweep, monkeypatch):
    keys = tuple((f"random {seed}", str(seed)) for seed in range(3))
    several = [batch(pair, inputs=keys)] * 2
    assert [len(rows) for rows in perform(several, 60.0)] == [3, 3]
    assert [len(rows) for rows in perform(several, 0.0)] == [1]
    monkeypatch.setattr(course, "SOON", 0.0)
    assert sweep(pair, ["validate", "execute"], INPUTS).counts == {"ok": 6}


@pytest.mark.parametrize("torn", [b'{"model": "a", "inp', b'{"mo', b'{"model": "x"}'])
def test_a_torn_last_line_is_dropped(pair, torn, sweep):
    output = pair / "rows.jsonl"
    sweep(pair, "execute", INPUTS, output=output)
    whole = output.read_bytes()
    output.write_bytes(whole[: whole.rindex(b'{"model"')] + torn)
    found = sweep(pair, "execute", INPUTS, output=output)
    assert found.done == 1
    assert len(output.read_bytes()) == pytest.approx(len(whole), abs=100)
    assert len([json.loads(line) for line in output.read_text().splitlines()]) == 4


@pytest.mark.parametrize(
    "content", ["no rows at all", '{"name": 1}\n', '[{"model": 1}]\n', "\0" * 100, "[" * 100_000 + "\n"]
)
def test_a_file_of_something_else_stays_as_it_is(pair, content, sweep):
    output = pair / "rows.jsonl"
    output.write_text(content)
    with pytest.raises(ValueError, match="is no file of `irrun sweep`"):
        sweep(pair, "execute", INPUTS, output=output)
    assert output.read_text() == content


def test_two_sweeps_do_not_write_to_one_file(pair, sweep):
    pytest.importorskip("fcntl")
    log = Log(pair / "rows.jsonl")
    with pytest.raises(ValueError, match="another sweep is writing"):
        sweep(pair, "execute", INPUTS, output=pair / "rows.jsonl")
    log.close()


def test_parquet_has_the_rows_and_is_gone_on_with(pair, sweep):
    parquet = pytest.importorskip("pyarrow.parquet")
    output = pair / "rows.parquet"
    found = sweep(pair, ["validate", "execute"], INPUTS, output=output)
    table = parquet.read_table(output)
    assert table.column("status").to_pylist() == ["ok"] * 6
    types = [str(field.type).partition("<")[0] for field in table.schema]
    assert types == ["string"] * 8 + ["double", "map", "string", "map"]
    assert sorted(path.name for path in pair.iterdir()) == ["a", "b", "rows.parquet"]
    again = sweep(pair, ["validate", "execute"], INPUTS, output=output)
    assert again.done == 0
    assert again.rows == found.rows


def test_names_cannot_become_markup():
    hostile = '</td><script>alert(1)</script>"\x1b[31m\udcff'
    row = Row(hostile, hostile, hostile, "compare", "differs", hostile, "N200", "N203")
    page = render_matrix([row, Row("b", "", "", "validate", "ok")]).decode()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4
    assert "\x1b" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_the_matrix_has_a_line_for_each_model_and_a_column_for_each_device():
    rows = [
        Row("a.xml", "1.npz", "ov:CPU", "compare", "ok", seconds=1.0),
        Row("a.xml", "2.npz", "ov:CPU", "compare", "crashed", "its process was ended by SIGSEGV, 2 times"),
        Row("b.xml", "", "", "validate", "timed out", "it took longer than 3 s"),
    ]
    page = render_matrix(rows).decode()
    assert page.count('<th scope="row">') == 2
    assert '<td class="crashed">' in page
    assert "crashed, 1 of 2 ok" in page
    assert '<td class="timed-out">' in page
    assert page.count("<td></td>") == 2


def test_a_model_of_no_inputs_and_one_that_lacks_them(tmp_path, sweep):
    model = Model()
    model.result(model.constant(np.float32([1, 2])))
    path = model.save(tmp_path)
    assert sweep(path, "execute").counts == {"ok": 1}
    lacking = sweep(twice(tmp_path / "a", 1), "execute")
    assert (lacking.rows[0].status, lacking.rows[0].inputs) == ("error", "")
