"""The graph of a report in a real browser: boxes, edges, colours, keys, and layouts that take too long."""


def test_groups_open_and_close_by_a_click(opened):
    report = opened("deep", "#tab=graph")
    before = report.boxes()
    assert "0" in set(before.values())
    number = next(box for box, text in before.items() if text == "0")
    report.page.locator(f"[data-box='{number}'] .toggle").click()
    report.page.locator(f".frame[data-box='{number}']").wait_for()
    assert {"attention", "mlp", "residual"} <= set(report.boxes().values()) - set(before.values())
    assert report.page.locator(".port").count() >= 2
    report.page.locator(f".frame[data-box='{number}'] .toggle").click()
    report.page.locator(f".box[data-box='{number}']").wait_for()
    assert report.boxes() == before


def test_there_are_never_too_many_boxes(opened):
    counts = opened("deep").page.evaluate("""async () => {
        const model = new Model(JSON.parse(await unpacked("data")));
        const scene = new Scene(model, null);
        return model.groups.map((_, number) => {
            scene.reveal(model.count + number, true);
            return [scene.boxes(), scene.isOpen(model.count + number)];
        });
    }""")
    assert len(counts) > 200
    assert 250 < max(boxes for boxes, _ in counts) <= 300
    assert all(is_open for _, is_open in counts)


def test_a_body_opens_in_its_layer(opened):
    report = opened("loop", "#tab=graph")
    loop = next(box for box, text in report.boxes().items() if text == "Loop")
    report.page.locator(f"[data-box='{loop}'] .toggle").click()
    report.page.locator(f".frame[data-box='{loop}']").wait_for()
    assert "Tanh" in report.boxes().values()
    assert report.page.locator(".edge path.back").count() >= 1


def test_both_bodies_of_a_branch_open_also_one_of_a_constant_alone(opened):
    report = opened("branches", "#tab=graph")
    choice = next(box for box, text in report.boxes().items() if text == "If")
    report.page.locator(f"[data-box='{choice}'] .toggle").click()
    report.page.locator(f".frame[data-box='{choice}']").wait_for()
    boxes = list(report.boxes().values())
    assert {"then_body", "else_body", "Tanh"} <= set(boxes)
    assert boxes.count("Result") == 3
    assert "Const" not in boxes
    report.page.get_by_label("constants").check()
    report.page.locator(".box.constant").wait_for()
    assert "Const" in report.boxes().values()


def test_a_tensor_that_many_boxes_read_stands_beside_each_of_them(opened):
    report = opened("shared", "#tab=graph")
    numbers = {text: box for box, text in report.boxes().items()}
    ports = report.page.locator(".port text")
    assert ports.all_text_contents() == ["from mask"] * 8
    assert report.page.locator(f".edge[data-from='{numbers['Tanh']}']").count() == 0
    ports.first.click()
    assert report.page.locator(".details .full").inner_text() == "mask"


def test_edges_say_what_flows(opened):
    report = opened("overflow", "#tab=graph")
    report.boxes()
    assert "f32[3, 64]" in report.page.locator(".edge text").all_text_contents()


def test_boxes_are_coloured_by_what_is_chosen(opened):
    report = opened("overflow", "#tab=graph")
    boxes = report.boxes()
    page = report.page
    colour = page.get_by_label("Colour by")
    modes = colour.locator("option").evaluate_all("options => options.map(option => option.value)")
    assert modes == ["category", "precision", "macs", "bytes", "time", "own", "accumulated", "device"]
    product = next(box for box, text in boxes.items() if text == "MatMul")
    relu = next(box for box, text in boxes.items() if text == "ReLU")

    def fills() -> list[str]:
        find = "box => getComputedStyle(document.querySelector(`[data-box='${box}'] .back`)).fill"
        return [page.evaluate(find, box) for box in (product, relu)]

    kinds = fills()
    assert kinds[0] != kinds[1]
    colour.select_option("macs")
    page.locator(".legend .ramp").wait_for()
    other = "([box, fill]) => getComputedStyle(document.querySelector(`[data-box='${box}'] .back`)).fill !== fill"
    page.wait_for_function(other, arg=[product, kinds[0]])  # boxes may be drawn a moment after the legend
    assert "3.07 k" in page.locator(f"[data-box='{product}']").text_content()
    for mode in modes:
        colour.select_option(mode)
        assert report.boxes()


def test_the_graph_goes_by_keys(opened):
    report = opened("overflow", "#tab=graph")
    report.boxes()
    page = report.page
    page.locator(".drawing").focus()
    for key, name in (("ArrowDown", "x"), ("ArrowDown", "up"), ("ArrowDown", "hidden"), ("ArrowUp", "up")):
        page.keyboard.press(key)
        assert page.locator(".details .full").inner_text() == name


def test_a_group_opens_by_a_key(opened):
    report = opened("deep", "#tab=graph")
    first = next(box for box, text in report.boxes().items() if text == "0")
    page = report.page
    page.locator(f".box[data-box='{first}'] .below").click()
    page.locator(f".frame[data-box='{first}']").wait_for()
    page.locator(".drawing").focus()
    page.keyboard.press("Enter")
    page.locator(f".box[data-box='{first}']").wait_for()
    page.keyboard.press("Enter")
    page.locator(f".frame[data-box='{first}']").wait_for()


def test_a_layout_that_takes_too_long_is_a_list(opened):
    report = opened("deep")
    page = report.page
    page.evaluate("""() => {
        const made = Worker;
        window.Worker = class extends made { postMessage() {} };
    }""")
    page.clock.install()
    page.get_by_role("tab", name="Graph").click()
    page.clock.run_for(10_000)
    page.locator(".drawing[data-boxes]").wait_for()
    assert "boxes are listed" in page.locator(".status").inner_text()
    assert len(report.boxes()) > 70
    assert page.locator(".edge").count() == 0
