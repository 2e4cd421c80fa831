// The tab of constants: where each lies in the .bin, what it is stored and computed as, and what is odd about it.
"use strict";

function weightsTab(panel, model, selection) {
  const {weights} = model.data;
  const held = weights.rows;
  const facts = [
    `${many(held.length, "constant")} of ${short(weights.bytes, "B")}`,
    weights.file_bytes === null ? "there is no .bin" : `the .bin has ${short(weights.file_bytes, "B")}`,
    weights.duplicate_bytes ? `${short(weights.duplicate_bytes, "B")} are stored again` : "",
    weights.gaps.length ? `${many(weights.gaps.length, "stretch", "stretches")} of it ${weights.gaps.length === 1 ? "is" : "are"} no constant's` : "",
    weights.overlaps.length ? `${many(weights.overlaps.length, "stretch", "stretches")} belong to several different ones` : "",
    weights.read ? "" : "what they hold was not read",
  ];
  const table = new Table({
    label: "constants", file: "constants.csv", rows: held, box: (row) => (row[0] < 0 ? null : row[0]),
    chosen: (row) => row[0] >= 0 && selection.set(row[0], "weights"),
    columns: [
      {title: "offset", value: (row) => row[1], text: (row) => whole(row[1]), number: true},
      {title: "bytes", value: (row) => row[2], text: (row) => whole(row[2]), number: true},
      {title: "name", value: (row) => (row[0] < 0 ? "" : model.path(row[0])), wide: true},
      {title: "stored", value: (row) => row[3]},
      {title: "computed", value: (row) => row[4]},
      {title: "shape", value: (row) => row[5]},
      {title: "quantized", value: (row) => row[6]},
      {title: "notes", value: (row) => row[7], wide: true},
    ],
  });
  panel.append(el("p", {class: "lead"}, `${facts.filter(Boolean).join("; ")}.`), table.element);
  selection.listen((box, from) => from !== "weights" && table.select(box));
  return {shown: () => table.select(selection.box)};
}
