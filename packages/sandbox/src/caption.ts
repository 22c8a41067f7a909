/** Draws the prompt's words as outlines of a bundled font, so that images do not depend on installed fonts. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import opentype, { type Font, type Glyph } from "opentype.js";

const FONT_FILE = "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf";
const LINES_MAX = 4;
/** Longer text is cut. */
const CHARS_MAX = 400;
/** Invisible characters, which are removed. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

let font: Font | null = null;

function loadFont(): Font {
  if (font === null) {
    const bytes = readFileSync(createRequire(import.meta.url).resolve(FONT_FILE));
    font = opentype.parse(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  }
  return font;
}

/** SVG: the words in white on a dark plate at the bottom, and a smaller line below them. */
export function drawCaption(words: string, note: string, { width, height }: { readonly width: number; readonly height: number }): string {
  const face = loadFont();
  const size = Math.max(7, Math.min(width * 0.042, height * 0.055, 120));
  const margin = size * 0.8;
  const widest = width - margin * 4;
  const lines = wrap(face, words.replace(UNSEEN, " ").trim().slice(0, CHARS_MAX), size, widest);
  const noteSize = size * 0.55;
  const plateHeight = lines.length * size * 1.3 + noteSize + margin * 1.4;
  const top = height - margin - plateHeight;
  const paths = lines.map((line, index) => outline(face, line, margin * 2, top + margin * 0.5 + size * (1 + index * 1.3), size));
  const noteLine = shorten(face, note, noteSize, widest);
  const notePath = outline(face, noteLine, margin * 2, height - margin * 1.7, noteSize);
  return (
    `<rect x="${round(margin)}" y="${round(top)}" width="${round(width - margin * 2)}" height="${round(plateHeight)}" rx="${round(size * 0.5)}" fill="#0b0f1a" fill-opacity=".78"/>` +
    `<path d="${paths.join("")}" fill="#fff"/><path d="${notePath}" fill="#fff" fill-opacity=".7"/>`
  );
}

function wrap(face: Font, text: string, size: number, widest: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).flatMap((long) => breakWord(face, long, size, widest))) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(face, longer, size) <= widest) line = longer;
    else {
      lines.push(line);
      line = word;
    }
    if (lines.length === LINES_MAX) break;
  }
  if (lines.length < LINES_MAX) return line === "" ? lines : [...lines, line];
  return [...lines.slice(0, -1), shorten(face, `${lines.at(-1) ?? ""} …`, size, widest)];
}

/** A word that is wider than a line, in pieces that are not. */
function breakWord(face: Font, word: string, size: number, widest: number): readonly string[] {
  const pieces: string[] = [];
  let piece = "";
  for (const char of word) {
    if (piece !== "" && widthOf(face, piece + char, size) > widest) {
      pieces.push(piece);
      piece = "";
    }
    piece += char;
  }
  return piece === "" ? pieces : [...pieces, piece];
}

/** As much of a line as there is room for, with dots for the rest. */
function shorten(face: Font, line: string, size: number, widest: number): string {
  if (widthOf(face, line, size) <= widest) return line;
  const chars = [...line.replace(/…$/, "")];
  while (chars.length > 1 && widthOf(face, `${chars.join("")}…`, size) > widest) chars.pop();
  return `${chars.join("")}…`;
}

/** Letter by letter: the library's own layout stops at a table of this font that it does not know. */
function outline(face: Font, line: string, x: number, y: number, size: number): string {
  let left = x;
  const paths = [...line].map((char) => {
    const glyph = face.charToGlyph(char);
    const path = glyph.getPath(left, y, size).toPathData(2);
    left += advanceOf(face, glyph, size);
    return path;
  });
  return paths.join("");
}

function widthOf(face: Font, line: string, size: number): number {
  return [...line].reduce((width, char) => width + advanceOf(face, face.charToGlyph(char), size), 0);
}

function advanceOf(face: Font, glyph: Glyph, size: number): number {
  return ((glyph.advanceWidth ?? 0) / face.unitsPerEm) * size;
}

function round(value: number): string {
  return value.toFixed(2);
}
