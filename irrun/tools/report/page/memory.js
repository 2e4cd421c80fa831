// The tab of memory: the bytes of activations that are held while each layer runs, and which tensors they are.
"use strict";

function memoryTab(panel, model, selection) {
  const {memory, layers} = model.data;
  if (!memory.unknown && !memory.layers.length) memory.unknown = "there is nothing to compute";
  if (memory.unknown) return panel.append(el("p", {class: "lead"}, "How much is held is not known: ", named(memory.unknown), "."));
  const most = memory.bytes.reduce((best, bytes, place) => (bytes > memory.bytes[best] ? place : best), 0);
  const taken = Object.keys(layers.texts).length ? ` Unknown sizes are taken as ${layers.taken}.` : "";
  const title = el("h3", {});
  const holder = el("div");
  const places = new Map(memory.layers.map((layer, place) => [layer, place]));
  const show = (place) => {
    const held = memory.tensors.filter(([, , bytes, begin, end]) => bytes && begin <= place && place <= end).sort((a, b) => b[2] - a[2]);
    replaceIn(title, "held while ", named(model.path(memory.layers[place])), ` runs: ${short(memory.bytes[place], "B")}`);
    const table = new Table({
      label: "tensors held", file: "memory.csv", rows: held, box: ([layer]) => layer, chosen: ([layer]) => selection.set(layer, "memory"),
      columns: [
        {title: "bytes", value: (tensor) => tensor[2], text: (tensor) => whole(tensor[2]), number: true},
        {title: "tensor of", value: (tensor) => model.path(tensor[0]), wide: true},
        {title: "type", value: (tensor) => model.layers.type[tensor[0]]},
        {title: "what it is", value: (tensor) => model.tensor(tensor[0], tensor[1])},
        {title: "from", value: (tensor) => tensor[3], number: true},
        {title: "to", value: (tensor) => tensor[4], number: true},
      ],
    });
    replaceIn(holder, table.element);
  };
  const plot = new Plot({
    label: "bytes of activations held while each layer runs, in order", x: memory.bytes.map((_, place) => place),
    series: [{label: "held", stroke: "--first", values: memory.bytes, stepped: true, filled: true}],
    axis: (place) => (Number.isInteger(place) ? String(place) : ""), value: (bytes) => short(bytes, "B"),
    title: (place) => model.path(memory.layers[place]), picked: (place) => { show(place); selection.set(memory.layers[place], "memory"); },
  });
  panel.append(
    el("p", {class: "lead"}, `The most is ${short(memory.bytes[most], "B")}, at `,
      el("button", {class: "link", onclick: () => { show(most); selection.set(memory.layers[most], "memory"); }}, named(model.path(memory.layers[most]))),
      `. Constants and what layers need while they compute are not counted.${taken}`),
    plot.element, title, holder,
  );
  show(most);
  selection.listen((box, from) => from !== "memory" && places.has(box) && show(places.get(box)));
  return {};
}
