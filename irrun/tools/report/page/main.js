// The page as a whole: data, tabs, search and the panel, once the data are unpacked.
"use strict";

async function start() {
  const page = document.getElementById("page");
  page.hidden = false;
  if (!("DecompressionStream" in window)) {
    page.append(el("p", {class: "failure"}, "This browser cannot unpack the report: it needs one of 2023 or later. With scripts off, the report is there as tables."));
    return;
  }
  const [text, source] = await Promise.all([unpacked("data"), unpacked("worker")]);
  const model = new Model(JSON.parse(text));
  const {data} = model;
  const selection = new Selection(model);
  const layouts = new Layouts(source);
  const details = new Details(model, selection, (tab, box) => {
    tabs.show(tab);
    selection.set(box, "link");
    tabs.view(tab)?.shown?.();
  });
  const colourBy = (mode, box) => {
    tabs.show("graph");
    tabs.view("graph").colourBy(mode);
    if (box !== null && box !== undefined) selection.set(box, "link");
  };
  const counts = data.counts;
  const severity = counts.error ? "error" : counts.warning ? "warning" : "";
  const tabs = new Tabs([
    {id: "summary", title: "Summary", build: (panel) => summaryTab(panel, model, details)},
    {id: "graph", title: "Graph", build: (panel) => new GraphTab(panel, model, selection, layouts)},
    {id: "diagnostics", title: "Diagnostics", count: data.diagnostics.length, severity, build: (panel) => new DiagnosticsTab(panel, model, selection, details)},
    {id: "layers", title: "Layers", count: model.count, build: (panel) => layersTab(panel, model, selection)},
    data.profile && {id: "profile", title: "Profile", build: (panel) => profileTab(panel, model, selection)},
    data.comparison && {id: "comparison", title: "Comparison", build: (panel) => comparisonTab(panel, model, selection, details, colourBy)},
    data.weights && data.weights.rows.length > 0 && {id: "weights", title: "Weights", build: (panel) => weightsTab(panel, model, selection)},
    {id: "memory", title: "Memory", build: (panel) => memoryTab(panel, model, selection)},
    data.difference && {id: "difference", title: "Differences", count: data.difference.groups.length, build: (panel) => differenceTab(panel, model, selection, details)},
  ].filter(Boolean), (tab) => {
    selection.tab = tab;
    selection.write();
  });
  const search = new Search(model, (box) => {
    if (!["graph", "layers", "memory", "weights", "comparison", "profile"].includes(tabs.current)) tabs.show("graph");
    selection.set(box, "search");
  });
  const holder = document.getElementById("search");
  holder.hidden = false;
  holder.append(search.element);
  const missing = el("p", {class: "missing", role: "alert", hidden: true});
  page.append(tabs.list, missing, el("div", {class: "body"}, tabs.panels, details.element));
  const follow = () => {
    const {tab, box, missing: lost} = selection.addressed();
    missing.hidden = lost === null;
    if (lost !== null) replaceIn(missing, "This model has no layer ", named(lost), ".");
    selection.tab = tab && tabs.has(tab) ? tab : tabs.current || (box === null ? "summary" : "graph");
    selection.box = box;
    tabs.show(selection.tab);
    selection.set(box, "address");
  };
  window.addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

start().catch((error) => {
  document.getElementById("page").append(el("p", {class: "failure", role: "alert"}, `The report cannot be shown: ${error.message}. With scripts off, it is there as tables.`));
  throw error;
});
