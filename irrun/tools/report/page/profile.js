// The tab of the profile: the second run as a timeline, sums by type, and all layers that are computed together.
"use strict";

function profileTab(panel, model, selection) {
  const {profile} = model.data;
  const {entries} = profile;
  const taken = (entry) => entry.time; // in the second of two runs, which was prepared for
  const speed = (entry) => (entry.operations && entry.time ? entry.operations * entry.calls / entry.time / 1e3 : null);
  const total = entries.reduce((sum, entry) => sum + taken(entry), 0) || 1;
  const byType = new Map();
  for (const entry of entries) {
    const type = entry.type.split(" ")[0];
    const known = byType.get(type) || {count: 0, time: 0, by: new Set()};
    known.count++;
    known.time += taken(entry);
    known.by.add(entry.by);
    byType.set(type, known);
  }
  const sums = [...byType].sort((a, b) => b[1].time - a[1].time);
  const types = sums.map(([type]) => type);
  const hue = (entry) => `oklch(${colour("--kind-light")} ${colour("--kind-chroma")} ${HUES[types.indexOf(entries[entry].type.split(" ")[0]) % HUES.length]})`;
  const said = el("p", {class: "hint plot-text", role: "status"});
  const pick = (entry) => entry.layers.length && selection.set(entry.layers[0], "profile");
  const timeline = new Timeline({
    events: profile.events, hue, label: (number) => `${entries[number].type} ${entries[number].name}`,
    tell: (text) => said.textContent = text, picked: (number) => pick(entries[number]),
  });
  const table = new Table({
    label: "layers computed together", file: "profile.csv", sorted: 4, descending: true,
    rows: entries, box: (entry) => entry.layers[0] ?? null, chosen: pick,
    columns: [
      {title: "layer", value: (entry) => entry.name, wide: true},
      {title: "type", value: (entry) => entry.type, wide: true},
      {title: "shape", value: (entry) => entry.shape},
      {title: "engine", value: (entry) => entry.by},
      {title: "time", value: taken, text: (entry) => micros(taken(entry)), number: true},
      {title: "share", value: (entry) => taken(entry) / total, text: (entry) => `${(100 * taken(entry) / total).toFixed(1)} %`, number: true},
      {title: "calls", value: (entry) => entry.calls, number: true},
      {title: "first", value: (entry) => entry.first, text: (entry) => micros(entry.first), number: true},
      {title: "GFLOP/s", value: (entry) => speed(entry),
        text: (entry) => (speed(entry)?.toPrecision(3) ?? ""), number: true},
    ],
  });
  panel.append(
    el("p", {class: "lead"}, `${micros(total)} in layers in the second of two runs, of ${many(profile.steps, "step")}; computed by ${profile.engines}.`,
      profile.left_out ? ` Of ${whole(profile.events.length + profile.left_out)} calls the first ${whole(profile.events.length)} are drawn.` : ""),
    timeline.canvas, said,
    el("details", {class: "sums"}, el("summary", {}, "by type"), plainTable(["type", "#layers", "#time", "#share", "engine"], sums.map(([type, {count, time, by}]) =>
      [type, whole(count), micros(time), `${(100 * time / total).toFixed(1)} %`, [...by].join(", ")]))),
    table.element,
  );
  selection.listen((box, from) => from !== "profile" && table.select(box));
  return {shown: () => { timeline.draw(); table.select(selection.box); }};
}
