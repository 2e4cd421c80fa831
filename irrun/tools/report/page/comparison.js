// The tab of a comparison: what differs first, the error along the depth of the model, and all tensors.
"use strict";

const LEAST = 1e-12; // what errors of 0 are drawn at, on an axis of logarithms
const MOST = 1e3;

function comparisonTab(panel, model, selection, details, colourBy) {
  const {comparison} = model.data;
  const {tensors, outputs} = comparison;
  const first = tensors.find((tensor) => !tensor.agrees);
  const on = (tensor) => (tensor.layer === null ? named(tensor.key) : details.link(tensor.layer, tensor.key));
  const inexact = (measured) => (measured && relative(measured) > 0 ? drawn(measured) : null);
  const drawn = (measured) => (measured ? Math.min(MOST, Math.max(LEAST, relative(measured))) : null);
  panel.append(
    el("p", {class: `lead ${comparison.agrees ? "ok" : "error"}`},
      comparison.agrees ? "It agrees with " : "It differs from ", named(comparison.other),
      first ? [": the first tensor whose layer does what its precision does not explain is ", on(first), first.cause ? ` (${first.cause})` : "", ". "] : ". ",
      tensors.length ? el("button", {class: "link", onclick: () => colourBy("own", first && first.layer)}, "Colour the graph by it.") : null),
    comparison.watching !== null && el("p", {class: "hint"}, `Watching tensors changes outputs by ${scientific(comparison.watching)} of their rms, as fusions are lost.`) || "",
    section("outputs", plainTable(["output", "verdict", "#largest error", "#of the rms", "#noise", "#beyond tolerance", "it may be"], outputs.map((output) => [
      output.layer === null ? output.name : details.link(output.layer, output.name), output.agrees ? "agrees" : `differs in ${output.differing} of ${many(output.runs, "run")}`,
      scientific(output.worst.max_abs), scientific(relative(output.worst)), decibels(output.worst.sqnr), output.worst.tolerance.includes("dB") ? "" : whole(output.worst.mismatches), output.worst.tolerance]))),
  );
  if (!tensors.length) return panel.append(el("p", {class: "hint"}, "Tensors on the way were not looked at."));
  const along = new Plot({
    label: "error along the depth of the model, of the rms of what is expected", log: true, x: tensors.map((_, place) => place),
    series: [
      {label: "accumulated", stroke: "--second", values: tensors.map((tensor) => inexact(tensor.accumulated))},
      {label: "own", stroke: "--first", points: true, values: tensors.map((tensor) => drawn(tensor.own))},
      {label: "off", stroke: "--error", points: true, values: tensors.map((tensor) => (tensor.agrees ? null : drawn(tensor.own)))},
    ],
    axis: (place) => (Number.isInteger(place) ? String(place) : ""), value: (number) => (number <= LEAST ? "0" : number >= MOST ? "not finite" : number.toExponential(0)),
    title: (place) => tensors[place].key, picked: (place) => tensors[place].layer !== null && selection.set(tensors[place].layer, "plot"),
  });
  const noise = tensors.map((tensor) => real(tensor.own.sqnr)).filter(Number.isFinite);
  const bins = noise.length > 1 ? histogram(noise) : null;
  const spread = bins && new Plot({
    label: `tensors by their own noise (${whole(tensors.length - noise.length)} are exact or not finite)`, x: bins.x, height: 180,
    series: [{label: "tensors", stroke: "--first", bars: true, values: bins.counts}],
    axis: (number) => `${number} dB`, value: (number) => (Number.isInteger(number) ? String(number) : ""),
    title: (place) => `${(bins.x[place] - bins.width / 2).toFixed(1)} to ${(bins.x[place] + bins.width / 2).toFixed(1)} dB`,
  });
  const single = el("div", {class: "single"});
  const show = (tensor) => replaceIn(single, tensor ? sizesPlot(tensor) : null);
  const measures = (side) => (tensor) => (tensor[side] ? relative(tensor[side]) : null);
  const text = (side) => (tensor) => (tensor[side] ? scientific(relative(tensor[side])) : "");
  const table = new Table({
    label: "tensors", file: "comparison.csv", rows: tensors, box: (tensor) => tensor.layer,
    chosen: (tensor) => { show(tensor); if (tensor.layer !== null) selection.set(tensor.layer, "comparison"); },
    columns: [
      {title: "order", value: (tensor) => tensors.indexOf(tensor), number: true},
      {title: "tensor", value: (tensor) => tensor.key, wide: true},
      {title: "type", value: (tensor) => tensor.type},
      {title: "verdict", value: (tensor) => (tensor.agrees ? "agrees" : `off ${tensor.cause || ""}`.trim()), mark: (tensor) => (tensor.agrees ? "" : "wrong")},
      {title: "own", value: measures("own"), text: text("own"), number: true},
      {title: "accumulated", value: measures("accumulated"), text: text("accumulated"), number: true},
      {title: "largest", value: (tensor) => real(tensor.own.max_abs), text: (tensor) => scientific(tensor.own.max_abs), number: true},
      {title: "worst element", value: (tensor) => (tensor.own.worst ? `[${tensor.own.worst.join(", ")}]` : "")},
      {title: "there", value: (tensor) => (tensor.own.worst_values ? tensor.own.worst_values.map(scientificText).join(", expected ") : "")},
      {title: "beyond", value: (tensor) => tensor.own.mismatches, text: (tensor) => whole(tensor.own.mismatches), number: true},
      {title: "computed in", value: (tensor) => [tensor.precision, tensor.primitive].filter(Boolean).join(" ")},
    ],
  });
  indexed(tensors, table);
  panel.append(along.element, el("div", {class: "columns"}, spread ? spread.element : "", single), table.element,
    comparison.untapped.length ? el("details", {}, el("summary", {}, `${many(comparison.untapped.length, "tensor")} could not be looked at`), plainTable(["tensor", "because"], comparison.untapped)) : "");
  const chosen = (box) => {
    table.select(box);
    show(box === null ? null : tensors.find((tensor) => tensor.layer === box));
  };
  selection.listen((box, from) => from !== "comparison" && chosen(box));
  show(first);
  return {shown: () => selection.box !== null && chosen(selection.box)};
}

// The place of each tensor, once for all: the table asks for it again and again.
function indexed(tensors, table) {
  const places = new Map(tensors.map((tensor, place) => [tensor, place]));
  table.columns[0].value = (tensor) => places.get(tensor);
}

// The largest errors of a tensor by the size of what is expected there.
function sizesPlot(tensor) {
  const edge = tensor.own.edge.map(([size, error]) => [real(size), real(error)]).filter(([size, error]) => Number.isFinite(size) && Number.isFinite(error)).sort((a, b) => a[0] - b[0]);
  if (edge.length < 2) return null;
  return new Plot({
    label: `errors of ${tensor.key}, by the size of the element`, height: 180, x: edge.map(([size]) => size),
    series: [{label: "largest error", stroke: "--first", values: edge.map(([, error]) => error), stepped: true}],
    axis: scientific, value: scientific, title: (place) => `of ${scientific(edge[place][0])}`,
  }).element;
}
