// Numbers as texts: three digits and a letter, bytes, times, errors.
"use strict";

const LETTERS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function short(number, unit = "") {
  if (number === null || number === undefined) return "?";
  const found = LETTERS.find(([power]) => Math.abs(number) >= power);
  const text = found ? `${Number((number / found[0]).toPrecision(3))} ${found[1]}${unit}` : `${Number(number.toPrecision(3))} ${unit}`;
  return text.trim();
}

function whole(number) {
  return number === null || number === undefined ? "?" : number.toLocaleString("en-US");
}

function micros(number) {
  if (number >= 1e6) return `${Number((number / 1e6).toPrecision(3))} s`;
  return number >= 1e3 ? `${Number((number / 1e3).toPrecision(3))} ms` : `${Number(number.toPrecision(3))} µs`;
}

// Numbers that JSON does not have come as texts: "inf", "-inf", "nan".
function real(value) {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return typeof value === "number" ? value : NaN;
}

function scientific(value) {
  const number = real(value);
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  if (number === 0) return "0";
  const size = Math.abs(number);
  return size >= 1e-3 && size < 1e5 ? String(Number(number.toPrecision(4))) : number.toExponential(2);
}

function decibels(value) {
  const number = real(value);
  return Number.isFinite(number) ? `${number.toFixed(1)} dB` : number > 0 ? "exact" : "none";
}

function many(count, word, several = `${word}s`) {
  return `${whole(count)} ${count === 1 ? word : several}`;
}
