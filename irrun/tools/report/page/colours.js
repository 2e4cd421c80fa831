// What the boxes of the graph are coloured by, and the legend of that. The colours themselves are the style's.
"use strict";

const HUES = [255, 25, 145, 80, 305, 195, 345, 55, 115, 225, 285, 170];

// A mode has either value(box), a number of 0 or more, or kind(box), a text; null where nothing is known.
class Colours {
  constructor(model) {
    this.model = model;
    this.modes = this.#modes();
    this.known = new Map();
    this.composed = new Map();
    this.mode = null;
    this.choose(this.modes[0].id);
  }

  #modes() {
    const {model} = this;
    const {layers} = model;
    const modes = [
      {id: "category", title: "kind of operation", kind: (layer) => layers.category[layer]},
      {id: "precision", title: "element type", kind: (layer) => model.elementType(layer) || null},
    ];
    const open = Object.keys(layers.texts).length > 0;
    const taken = open ? `unknown sizes taken as ${layers.taken}` : "";
    modes.push({id: "macs", title: "MACs", value: (layer) => layers.macs[layer], text: short, sum: true, note: taken});
    modes.push({id: "bytes", title: "bytes moved", value: (layer) => layers.bytes[layer], text: (n) => short(n, "B"), sum: true, note: taken});
    if (model.times) modes.push({id: "time", title: "time", value: (layer) => model.times.get(layer) ?? null, text: micros, sum: true});
    if (model.errors) {
      const error = (side) => (layer) => {
        const tensor = model.errors.get(layer);
        return tensor && tensor[side] ? relative(tensor[side]) : null;
      };
      const text = (n) => (n === Infinity ? "not finite" : scientific(n));
      modes.push({id: "own", title: "own error", value: error("own"), text, log: true, note: "of the rms of what is expected"});
      modes.push({id: "accumulated", title: "accumulated error", value: error("accumulated"), text, log: true, note: "of the rms of what is expected"});
      modes.push({id: "device", title: "precision of the other side", kind: (layer) => model.errors.get(layer)?.precision ?? null});
    }
    return modes;
  }

  choose(id) {
    this.mode = this.modes.find((mode) => mode.id === id) || this.modes[0];
    this.known.clear();
    this.composed.clear();
    const values = [], kinds = new Map();
    for (let layer = 0; layer < this.model.count; layer++) {
      if (this.model.layers.quiet[layer]) continue;
      if (this.mode.kind) {
        const kind = this.mode.kind(layer);
        if (kind !== null) kinds.set(kind, (kinds.get(kind) || 0) + 1);
      } else {
        const value = this.mode.value(layer);
        if (value > 0) values.push(value);
      }
    }
    this.kinds = [...kinds].sort((a, b) => b[1] - a[1]).map(([kind]) => kind);
    const finite = values.filter(Number.isFinite);
    this.top = finite.length < values.length ? 0.7 : 1; // what is not finite stands out
    this.low = finite.reduce((a, b) => Math.min(a, b), Infinity);
    this.high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  }

  // Of a group the sum of its layers, or the worst, or what all of them are; null where nothing is known.
  of(box) {
    if (!this.known.has(box)) this.known.set(box, this.#of(box));
    return this.known.get(box);
  }

  #of(box) {
    const own = (layer) => (this.mode.kind ? this.mode.kind(layer) : this.mode.value(layer));
    const inner = this.model.children.get(box);
    if (!inner || (this.mode.kind && this.model.isLayer(box))) return this.model.layers.quiet[box] && this.mode.kind ? null : own(box);
    const found = inner.map((child) => this.of(child));
    if (this.model.isLayer(box)) found.push(own(box));
    const known = found.filter((value) => value !== null && value !== undefined);
    if (!known.length) return null;
    if (this.mode.kind) return known.every((kind) => kind === known[0]) ? known[0] : "several";
    return this.mode.sum ? known.reduce((a, b) => a + b, 0) : Math.max(...known);
  }

  // How many layers of each kind there are in a group.
  parts(box) {
    if (!this.mode.kind || this.model.isLayer(box)) return [];
    if (!this.composed.has(box)) this.composed.set(box, this.#parts(box));
    return this.composed.get(box);
  }

  #parts(box) {
    const counts = new Map();
    for (const layer of this.model.within(box)) {
      const kind = this.model.layers.quiet[layer] ? null : this.mode.kind(layer);
      if (kind !== null) counts.set(kind, (counts.get(kind) || 0) + 1);
    }
    return [...counts].filter(([kind]) => this.hue(kind)).sort((a, b) => b[1] - a[1]);
  }

  text(box) {
    const value = this.of(box);
    if (value === null || value === undefined) return "";
    return this.mode.kind ? value : this.mode.text(value);
  }

  // The colour of a box, as the style says it; null for one of which nothing is known.
  fill(box) {
    const value = this.of(box);
    if (value === null || value === undefined) return null;
    if (this.mode.kind) return this.hue(value);
    return this.heat(value);
  }

  hue(kind) {
    const place = this.kinds.indexOf(kind);
    return place < 0 ? null : `oklch(var(--kind-light) var(--kind-chroma) ${HUES[place % HUES.length]})`;
  }

  heat(value) {
    return `color-mix(in oklab, var(--heat) ${Math.round(100 * this.share(value))}%, var(--box))`;
  }

  // Where a value lies between the least and the largest of all layers, from 0 to 1.
  share(value) {
    if (!(value > 0)) return 0;
    if (value === Infinity) return 1;
    if (value >= this.high) return this.top;
    if (!this.mode.log) return Math.max(0.03, Math.sqrt(value / this.high));
    const span = Math.log(this.high / this.low);
    return span > 0 ? this.top * Math.max(0.03, Math.log(value / this.low) / span) : this.top;
  }

  legend() {
    if (this.mode.kind) {
      return el("ul", {class: "legend"}, this.kinds.slice(0, HUES.length).map((kind) => {
        const swatch = el("i");
        swatch.style.background = this.hue(kind);
        return el("li", {}, swatch, kind);
      }));
    }
    if (!Number.isFinite(this.high)) return el("p", {class: "legend"}, "nothing is known of it");
    const bar = el("i", {class: "ramp"});
    const begin = this.mode.log ? this.mode.text(this.low) : "0";
    return el("p", {class: "legend"}, begin, bar, this.mode.text(this.high), this.mode.note && el("small", {}, this.mode.note));
  }
}

// An error in parts of the rms of what is expected.
function relative(measured) {
  if (!measured.comparable || measured.nonfinite_differing) return Infinity;
  const value = real(measured.nrmse);
  return Number.isNaN(value) ? Infinity : value;
}
