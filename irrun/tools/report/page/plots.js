// Plots, by uPlot, in the colours of the page; drawn again when these or the width change.
"use strict";

const PLOT_HEIGHT = 240;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// `x` are ascending numbers, each of `series` {label, values, stroke, points, bars, stepped}; `picked(place)` is told of
// a click, `title(place)` says what stands at a place.
class Plot {
  constructor({label, x, series, axis, value, log = false, picked = null, title = null, height = PLOT_HEIGHT}) {
    Object.assign(this, {label, x, series, axis, value, log, picked, title, height});
    this.said = el("p", {class: "hint plot-text", role: "status"});
    this.holder = el("div", {class: "plot", role: "img", "aria-label": label});
    this.element = el("figure", {}, el("figcaption", {}, label), this.#key(), this.holder, this.said);
    this.plot = null;
    new ResizeObserver(() => this.#sized()).observe(this.holder);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#make());
  }

  #key() {
    if (this.series.length < 2) return null;
    return el("ul", {class: "legend"}, this.series.map((each) => {
      const swatch = el("i");
      swatch.style.background = `var(${each.stroke})`;
      return el("li", {}, swatch, each.label);
    }));
  }

  #sized() {
    const width = this.holder.clientWidth;
    if (!width) return;
    if (this.plot) this.plot.setSize({width, height: this.height});
    else this.#make();
  }

  #make() {
    const width = this.holder.clientWidth;
    if (!width) return;
    if (this.plot) this.plot.destroy();
    const line = {stroke: colour("--muted"), grid: {stroke: colour("--grid"), width: 1}, ticks: {stroke: colour("--grid"), width: 1}, font: "11px system-ui, sans-serif"};
    this.plot = new uPlot(
      {
        width, height: this.height, legend: {show: false}, cursor: {points: {size: 7}, drag: {x: true, y: false}},
        scales: {x: {time: false, ...this.#range()}, y: this.log ? {distr: 3, log: 10} : {range: (_, low, high) => [Math.min(0, low), high * 1.05 || 1]}},
        axes: [{...line, values: (_, ticks) => ticks.map((tick) => (this.axis ? this.axis(tick) : tick))},
          {...line, ...(this.log ? {grid: {...line.grid, filter: decades}, ticks: {...line.ticks, filter: decades}} : {}), size: 64, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : this.value(tick)))}],
        series: [{}, ...this.series.map((each) => ({
          label: each.label, stroke: colour(each.stroke), width: each.points ? 0 : 1.5, spanGaps: true,
          fill: each.bars || each.filled ? `color-mix(in srgb, ${colour(each.stroke)} 25%, transparent)` : undefined,
          paths: each.bars ? uPlot.paths.bars({size: [0.9, 60]}) : each.stepped ? uPlot.paths.stepped({align: 1}) : each.points ? () => null : undefined,
          points: {show: Boolean(each.points), size: each.stroke === "--error" ? 8 : 5, fill: colour(each.stroke)},
        }))],
        hooks: {setCursor: [(plot) => this.#moved(plot)]},
      },
      [this.x, ...this.series.map((each) => each.values)],
      this.holder,
    );
    this.plot.over.addEventListener("click", () => {
      if (this.picked && this.plot.cursor.idx !== null) this.picked(this.plot.cursor.idx);
    });
  }

  // Bars need room at both ends.
  #range() {
    if (!this.series.some((each) => each.bars) || this.x.length < 2) return {};
    const half = (this.x[1] - this.x[0]) / 2;
    return {range: [this.x[0] - half, this.x.at(-1) + half]};
  }

  #moved(plot) {
    const place = plot.cursor.idx;
    if (place === null || place === undefined) return;
    const values = this.series.map((each) => [each.label, each.values[place]]).filter(([, value]) => value !== null && value !== undefined);
    this.said.textContent = [this.title && this.title(place), ...values.map(([name, value]) => `${name} ${this.value(value)}`)].filter(Boolean).join(", ");
  }
}

// Of the places of an axis those that are powers of ten.
function decades(plot, splits) {
  return splits.map((split) => (Math.abs(Math.log10(split) % 1) < 1e-6 ? split : null));
}

// How many values lie in each of some ranges of equal width: {x, counts, width}.
function histogram(values, bins = 40) {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const width = (high - low) / bins || 1;
  const counts = new Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor((value - low) / width))]++;
  return {x: counts.map((_, bin) => low + (bin + 0.5) * width), counts, width};
}
