// Calls of layers over time, those within others below them; enlarged by the wheel, moved by dragging.
"use strict";

const LANE = 22;
const NARROWEST = 0.4; // pixels; what is narrower runs together

class Timeline {
  // `events` are [entry, begin, duration] in microseconds, by begin; `label`, `hue` say of an entry what it is.
  constructor({events, label, hue, tell, picked}) {
    Object.assign(this, {label, hue, tell, picked});
    this.events = laned(events);
    this.lanes = this.events.reduce((most, {lane}) => Math.max(most, lane), 0) + 1;
    this.end = events.reduce((end, [, begin, duration]) => Math.max(end, begin + duration), 1);
    this.from = 0;
    this.span = this.end;
    this.canvas = el("canvas", {class: "timeline", tabindex: "0", role: "img",
      "aria-label": "Calls of layers over time; arrows move, + and − enlarge. The table below has the same."});
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const share = event.offsetX / this.canvas.clientWidth;
      this.#zoom(Math.exp((event.deltaY || event.deltaX) / 400), share);
    }, {passive: false});
    this.canvas.addEventListener("pointermove", (event) => this.#over(event));
    this.canvas.addEventListener("click", (event) => {
      const found = this.#at(event.offsetX, event.offsetY);
      if (found) this.picked(found.entry);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const act = {ArrowLeft: () => this.#move(-0.2), ArrowRight: () => this.#move(0.2), "+": () => this.#zoom(0.7), "=": () => this.#zoom(0.7), "-": () => this.#zoom(1.4), "0": () => this.#zoom(Infinity)}[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  #zoom(factor, share = 0.5) {
    const span = Math.min(this.end, Math.max(1, this.span * factor));
    this.from += (this.span - span) * share;
    this.span = span;
    this.#move(0);
  }

  #move(share) {
    this.from = Math.min(this.end - this.span, Math.max(0, this.from + share * this.span));
    this.draw();
  }

  #over(event) {
    if (event.buttons & 1) this.#move(-event.movementX / this.canvas.clientWidth);
    const found = this.#at(event.offsetX, event.offsetY);
    this.tell(found ? `${this.label(found.entry)}: ${micros(found.duration)} at ${micros(found.begin)}` : "");
  }

  #at(x, y) {
    const time = this.from + (x / this.canvas.clientWidth) * this.span;
    const lane = Math.floor(y / LANE);
    const slack = (2 / this.canvas.clientWidth) * this.span;
    return this.events.find((event) => event.lane === lane && time >= event.begin - slack && time <= event.begin + event.duration + slack);
  }

  draw() {
    const width = this.canvas.clientWidth, height = this.lanes * LANE + 18;
    if (!width) return;
    const sharp = devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * sharp;
    this.canvas.height = height * sharp;
    const ink = this.canvas.getContext("2d");
    ink.scale(sharp, sharp);
    ink.font = "11px system-ui, sans-serif";
    ink.textBaseline = "middle";
    this.#ticks(ink, width, height);
    const text = colour("--text");
    const reach = [];
    for (const event of this.events) {
      const left = ((event.begin - this.from) / this.span) * width, wide = (event.duration / this.span) * width;
      if (left + wide < 0 || left > width) continue;
      if (wide < NARROWEST && left < (reach[event.lane] ?? -1)) continue;
      reach[event.lane] = left + NARROWEST;
      ink.fillStyle = this.hue(event.entry);
      ink.fillRect(left, event.lane * LANE + 1, Math.max(wide - 0.5, NARROWEST), LANE - 3);
      if (wide < 44) continue;
      ink.save();
      ink.beginPath();
      ink.rect(Math.max(left, 0), event.lane * LANE, wide - 4, LANE);
      ink.clip();
      ink.fillStyle = text;
      ink.fillText(this.label(event.entry), Math.max(left, 0) + 4, event.lane * LANE + LANE / 2);
      ink.restore();
    }
  }

  #ticks(ink, width, height) {
    const step = 10 ** Math.floor(Math.log10(this.span / 4));
    const wide = [1, 2, 5].map((factor) => factor * step).find((each) => this.span / each < 9) || 10 * step;
    ink.strokeStyle = colour("--grid");
    ink.fillStyle = colour("--muted");
    for (let time = Math.ceil(this.from / wide) * wide; time <= this.from + this.span; time += wide) {
      const x = ((time - this.from) / this.span) * width;
      ink.beginPath();
      ink.moveTo(x, 0);
      ink.lineTo(x, height - 16);
      ink.stroke();
      ink.fillText(micros(time), x + 3, height - 8);
    }
  }
}

// Events with the lane that each is in: one below what it happens within.
function laned(events) {
  const around = [];
  return events.map(([entry, begin, duration]) => {
    while (around.length && around.at(-1) <= begin + 0.05) around.pop();
    const lane = around.length;
    around.push(begin + duration);
    return {entry, begin, duration, lane};
  });
}
