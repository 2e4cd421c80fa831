// Elements of the page. Texts become text nodes, never markup, so a name can be anything.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// el("button", {class: "link", onclick: f}, "open", child...): properties that begin with "on" listen.
function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// A name of a model: isolated, so that letters written from right to left turn nothing else round.
function named(text, properties = {}) {
  return el("bdi", properties, text);
}

// A table of texts that is short enough to be there as it is. Columns whose head begins with "#" are numbers.
function plainTable(heads, rows, caption) {
  const numeric = heads.map((head) => head.startsWith("#"));
  return el(
    "table",
    {class: "plain-table"},
    caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((head, column) =>
      el("th", {scope: "col", class: numeric[column] ? "number" : null}, head.replace(/^#/, ""))))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, column) =>
      el("td", {class: numeric[column] ? "number" : null}, typeof cell === "string" ? named(cell) : cell))))),
  );
}

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

// What takes the place of everything in an element.
function replaceIn(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}
