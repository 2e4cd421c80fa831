// The tab with what is said of the model as a whole.
"use strict";

function summaryTab(panel, model, details) {
  const {data} = model;
  const {summary} = data;
  const [heads, ...types] = summary.types;
  replaceIn(
    panel,
    el("div", {class: "cards"}, summary.facts.map(([label, text, more]) =>
      el("div", {class: "card"}, el("h2", {}, label), el("p", {class: text.length > 18 ? "long" : null}, named(text)), el("small", {}, named(more))))),
    verdicts(data),
    el("div", {class: "columns"},
      el("div", {},
        Object.entries(summary.tensors).filter(([, rows]) => rows.length).map(([title, rows]) =>
          section(title, plainTable(["name", "type and shape", "layout", "other names"], rows))),
        summary.states.length > 0 && section("states that grow", plainTable(["variable", "type", "#axis", "#bytes for each token"], summary.states.map((row) => row.map(String)))),
        summary.formulas.length > 0 && section(`in unknown sizes, taken as ${data.layers.taken} above`, plainTable(["", "formula"], summary.formulas)),
        summary.demands.length > 0 && section("what asks for its release", plainTable(["layer", "because of"],
          summary.demands.map(([layer, path, what]) => [layer === null ? path : details.link(layer, path), what]))),
        summary.uncounted.length > 0 && section("layers whose MACs are not known", plainTable(["layer", "because"], summary.uncounted)),
        section("provenance", plainTable(["entry", "value"], summary.provenance))),
      el("div", {},
        section("layers by type", plainTable([heads[0], ...heads.slice(1).map((head) => `#${head}`)], types)),
        summary.element_types.length > 0 && section("constants by type",
          plainTable(["stored", "computed as", "#constants", "#elements", "#bytes"], summary.element_types)))),
    el("p", {class: "hint"}, "written by irrun ", data.irrun, ", ", data.written, " from ", named(summary.path)),
  );
}

// A sentence for each part of the report that decides something.
function verdicts(data) {
  const lines = [];
  if (data.comparison) {
    const first = data.comparison.tensors.find((tensor) => !tensor.agrees);
    const verdict = data.comparison.agrees ? "agrees with " : "differs from ";
    lines.push(["comparison", data.comparison.agrees ? "ok" : "error", [verdict, named(data.comparison.other), first ? [", first at ", named(first.key)] : null]]);
  }
  if (data.difference) {
    const {difference} = data;
    lines.push(["differences", difference.equal ? "ok" : "warning",
      [difference.equal ? "the same model as " : `${many(difference.groups.length, "kind")} of differences from `, named(difference.models[1])]]);
  }
  if (data.profile) {
    const sum = data.profile.entries.reduce((total, entry) => total + entry.time, 0);
    lines.push(["profile", "ok", [`${micros(sum)} in layers in a run, by ${data.profile.engines}`]]);
  }
  return lines.length ? el("ul", {class: "verdicts"}, lines.map(([title, kind, text]) => el("li", {class: kind}, el("b", {}, title), " ", text))) : null;
}
