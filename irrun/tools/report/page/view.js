// A drawing that can be moved and enlarged: by dragging, the wheel, and buttons.
"use strict";

const SCALES = [0.08, 3];

class View {
  constructor(label) {
    this.content = svg("g");
    this.element = svg("svg", {class: "drawing", tabindex: "0", role: "group", "aria-label": label}, arrows(), this.content);
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.width = 1;
    this.height = 1;
    this.element.addEventListener("wheel", (event) => this.#wheel(event), {passive: false});
    this.element.addEventListener("pointerdown", (event) => this.#grab(event));
  }

  #wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) {
      const box = this.element.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    } else {
      this.move(-event.deltaX, -event.deltaY);
    }
  }

  #grab(event) {
    if (event.button !== 0) return;
    let last = event, moved = 0;
    const drag = (next) => {
      moved += Math.abs(next.clientX - last.clientX) + Math.abs(next.clientY - last.clientY);
      if (moved > 4) {
        this.element.classList.add("dragged");
        this.move(next.clientX - last.clientX, next.clientY - last.clientY);
      }
      last = next;
    };
    const drop = () => {
      window.removeEventListener("pointermove", drag);
      window.removeEventListener("pointerup", drop);
      setTimeout(() => this.element.classList.remove("dragged"));
    };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop);
  }

  move(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.#apply();
  }

  zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    const scale = Math.min(SCALES[1], Math.max(SCALES[0], this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.#apply();
  }

  // All of it in sight, but no smaller than `least`: then its top.
  fit(least = SCALES[0]) {
    const {clientWidth, clientHeight} = this.element;
    this.scale = Math.min(1, Math.max(least, Math.min(clientWidth / this.width, clientHeight / this.height)));
    this.x = Math.max((clientWidth - this.width * this.scale) / 2, least > SCALES[0] ? -Infinity : 0);
    this.y = Math.max((clientHeight - this.height * this.scale) / 2, 0);
    this.#apply();
  }

  // Bring a rectangle of the drawing into sight, in the middle unless it is there already.
  show(x, y, width, height) {
    const {clientWidth, clientHeight} = this.element;
    const left = this.x + x * this.scale, top = this.y + y * this.scale;
    const inside = left >= 0 && top >= 0 && left + width * this.scale <= clientWidth && top + height * this.scale <= clientHeight;
    if (inside && this.scale >= 0.5) return;
    if (this.scale < 0.7) this.scale = 0.9;
    this.x = clientWidth / 2 - (x + width / 2) * this.scale;
    this.y = height * this.scale > clientHeight ? 20 - y * this.scale : clientHeight / 2 - (y + height / 2) * this.scale;
    this.#apply();
  }

  #apply() {
    this.content.setAttribute("transform", `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${this.scale.toFixed(4)})`);
  }
}

function arrows() {
  return svg("defs", {}, ["arrow", "arrow-lit"].map((id) => svg(
    "marker",
    {id, viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "7", markerHeight: "7", orient: "auto-start-reverse", class: id},
    svg("path", {d: "M0 0.8 L7.5 4 L0 7.2 Z"}),
  )));
}
