"""The page in a real browser: opened from disk, it asks for nothing, and does what people click, type and look for."""

import csv
import io

import pytest

from .models import HOSTILE


def texts(found) -> list[str]:
    return [text.strip() for text in found.all_inner_texts()]


def test_every_tab_is_there_and_shows_something(opened):
    report = opened("overflow")
    page = report.page
    tabs = page.get_by_role("tab")
    names = ["Summary", "Graph", "Diagnostics", "Layers", "Profile", "Comparison", "Weights", "Memory", "Differences"]
    assert [name.rstrip("0123456789,\n") for name in texts(tabs)] == names
    for number in range(tabs.count()):
        tabs.nth(number).click()
        panel = page.locator("[role=tabpanel]:not([hidden])")
        assert panel.count() == 1
        assert panel.get_attribute("aria-labelledby") == tabs.nth(number).get_attribute("id")
        assert len(panel.inner_text()) > 20
    assert page.locator(".plot canvas").count() >= 3


def test_tabs_go_by_arrow_keys(opened):
    page = opened("overflow").page
    page.get_by_role("tab", name="Summary").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-graph"
    assert page.locator("#panel-graph").is_visible()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.id") == "tab-difference"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-summary"
    assert page.locator("[role=tab][tabindex='0']").count() == 1
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("square", "square"),
        ("power", "square"),
        ("line 105", "square"),
        ("N202", "square"),
        ("reducemean", "mean_of_squares"),
        ("nothing like it", None),
    ],
)
def test_layers_are_found_by_name_type_line_and_diagnostic(opened, query, first):
    page = opened("overflow").page
    page.keyboard.press("/")
    page.keyboard.type(query)
    options = page.get_by_role("option")
    if first is None:
        assert options.count() == 0
        assert "nothing of that" in page.locator("#found").inner_text()
        return
    assert first in options.first.inner_text()
    page.keyboard.press("Enter")
    assert page.locator(".details .full").inner_text() == first
    page.locator(".box.selected").wait_for()
    assert "layer=" in page.evaluate("location.hash")


def test_layers_are_found_by_the_names_of_tensors(opened):
    page = opened("loop").page
    page.get_by_role("combobox").fill("history")
    assert "tensor history" in page.get_by_role("option").first.inner_text()


def test_an_address_leads_to_a_layer_also_in_a_body(opened):
    report = opened("loop", "#layer=Loop_13276/body/Tanh_13267")
    page = report.page
    page.locator(".box.selected").wait_for()
    assert page.locator("#panel-graph").is_visible()
    assert page.locator(".details h2").inner_text() == "Tanh"
    report.go("#tab=layers&layer=x")
    page.locator("#panel-layers tr[aria-selected=true]").wait_for()
    assert page.locator(".details h2").inner_text() == "Parameter"
    report.go("#layer=gone")
    assert "no layer gone" in page.get_by_role("alert").inner_text()


def test_the_selection_is_one_for_all_tabs(opened):
    page = opened("overflow", "#tab=layers").page
    page.locator("#panel-layers tr[data-box]", has_text="square").first.click()
    page.get_by_role("tab", name="Graph").click()
    assert "square" in page.locator(".box.selected").text_content()
    page.get_by_role("tab", name="Comparison").click()
    assert "square" in page.locator("#panel-comparison tr[aria-selected=true]").inner_text()
    page.get_by_role("button", name="Close").click()
    assert page.locator(".details").is_hidden()


def test_tables_sort_filter_and_are_virtual(opened):
    page = opened("deep", "#tab=layers").page
    panel = page.locator("#panel-layers")
    assert panel.locator("table").get_attribute("aria-rowcount") == "1503"
    assert panel.locator("tr[data-box]").count() < 100
    panel.get_by_role("button", name="MACs").click()
    assert panel.locator("th[aria-sort=descending]").inner_text().startswith("MACs")
    assert "MatMul" in panel.locator("tr[data-box]").first.inner_text()
    panel.get_by_role("searchbox").fill("layers.7.mlp gate matmul")
    assert panel.locator("tr[data-box]").count() == 1
    panel.get_by_role("searchbox").fill("")
    scroller = panel.get_by_role("region")
    scroller.focus()
    page.keyboard.press("End")
    assert panel.locator("tr[aria-selected=true]").get_attribute("aria-rowindex") == "1503"


def test_a_table_is_downloaded_as_csv(opened, tmp_path):
    page = opened("hostile", "#tab=layers").page
    with page.expect_download() as download:
        page.locator("#panel-layers").get_by_role("button", name="CSV").click()
    path = tmp_path / "layers.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    names = [row["name"] for row in rows]
    assert HOSTILE["markup"] in names
    assert "'" + HOSTILE["formula"] in names
    assert [row["op"] for row in rows] == ["Parameter-1", *["ReLU-1"] * len(HOSTILE), "Result-1"]


def test_hostile_names_stay_texts(opened):
    report = opened("hostile", "#tab=graph")
    assert len(report.boxes()) == len(HOSTILE) + 3
    page = report.page
    for tab in page.get_by_role("tab").all():
        tab.click()
    page.keyboard.press("/")
    page.keyboard.type("<img src=x")
    page.keyboard.press("Enter")
    assert page.locator(".details .full").inner_text() == HOSTILE["markup"]
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == page.locator("body > script").count()


def test_diagnostics_show_their_lines_and_lead_to_layers(opened):
    page = opened("defects", "#tab=diagnostics").page
    article = page.locator("[data-code=E306]")
    assert '<data max="6"/>' in article.inner_text()
    assert article.locator("mark").inner_text() == "<data"
    page.get_by_label("4 errors").uncheck()
    assert article.count() == 0
    page.get_by_label("4 errors").check()
    article.get_by_role("button").click()
    assert page.locator(".details .full").inner_text() == "bounded"


def test_what_is_said_of_many_layers_is_said_once_and_leads_to_each(opened):
    page = opened("hostile", "#tab=diagnostics").page
    (article,) = page.locator("article").all()
    assert f"; and {len(HOSTILE) - 1} more: lines " in article.inner_text()
    article.get_by_role("button", name="82", exact=True).click()
    assert page.locator(".details .full").inner_text() == HOSTILE["formula"]


def test_without_scripts_it_is_read_as_tables(opened):
    page = opened("defects", ready=False, java_script_enabled=False).page
    text = page.locator("body").inner_text()
    assert "Clamp-1 lacks its required attribute `min`" in text
    assert page.locator("table tbody tr td bdi", has_text="bounded").is_visible()
    assert page.locator("main").is_hidden()


def test_dark_mode_and_paper_have_their_own_looks(opened):
    light = opened("overflow").page
    dark = opened("overflow", color_scheme="dark").page
    ground = "getComputedStyle(document.body).backgroundColor"
    shades = [sum(map(int, page.evaluate(ground)[4:-1].split(","))) for page in (light, dark)]
    assert shades[0] > 600
    assert shades[1] < 150
    light.emulate_media(media="print")
    assert light.locator("[role=tablist]").is_hidden()
    assert light.locator("#panel-summary").is_visible()
