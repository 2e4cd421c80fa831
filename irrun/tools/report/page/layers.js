// The tab with all layers as a table.
"use strict";

function layersTab(panel, model, selection) {
  const {layers} = model;
  const columns = [
    {title: "id", value: (layer) => layers.id[layer], number: true},
    {title: "name", value: (layer) => model.path(layer), wide: true},
    {title: "op", value: (layer) => layers.op[layer] || layers.type[layer]},
    {title: "line", value: (layer) => layers.line[layer], number: true},
    {title: "outputs", value: (layer) => layers.outputs[layer].map(([text]) => text).join(", "), wide: true},
    {title: "MACs", value: (layer) => layers.macs[layer], text: (layer) => model.cost(layer, "macs"), number: true},
    {title: "bytes", value: (layer) => layers.bytes[layer], text: (layer) => model.cost(layer, "bytes"), number: true},
  ];
  if (model.times) {
    const time = (layer) => model.times.get(layer) ?? null;
    columns.push({title: "time", value: time, text: (layer) => (time(layer) === null ? "" : micros(time(layer))), number: true});
  }
  if (model.errors) {
    const error = (side) => (layer) => {
      const tensor = model.errors.get(layer);
      return tensor && tensor[side] ? relative(tensor[side]) : null;
    };
    for (const [side, title] of [["own", "own error"], ["accumulated", "accumulated"]]) {
      const value = error(side);
      columns.push({title, value, text: (layer) => (value(layer) === null ? "" : scientific(value(layer))), number: true,
        mark: (layer) => (model.errors.get(layer)?.agrees === false ? "wrong" : "")});
    }
  }
  columns.push({title: "diagnostics", value: (layer) => [...new Set((model.diagnostics.get(layer) || []).map((number) => model.data.diagnostics[number].code))].join(" ")});
  const table = new Table({
    label: "layers", columns, rows: layers.name.map((_, layer) => layer), box: (layer) => layer,
    chosen: (layer) => selection.set(layer, "layers"), file: "layers.csv",
  });
  panel.append(table.element);
  selection.listen((box, from) => from !== "layers" && table.select(box));
  table.select(selection.box);
  return {shown: () => table.select(selection.box), table};
}
