/**
 * The sandbox's scenes: landscapes and patterns in SVG, made of the prompt's words, a palette and random numbers. All random choices are
 * made before the first frame, so that a scene moves smoothly and is reproducible.
 */
import type { Palette } from "./palette.js";
import type { Random } from "./random.js";

export interface Canvas {
  readonly width: number;
  readonly height: number;
}

/** SVG elements at a time in seconds. */
export type Scene = (seconds: number) => string;
type SceneMaker = (canvas: Canvas, palette: Palette, random: Random) => Scene;

/** Which words ask for which scene; a prompt with none of them leaves it to chance. */
const SCENES: readonly (readonly [RegExp, SceneMaker])[] = [
  [/\b(sea|ocean|beach|boat|ship|water|lake|river|fish|island|waves?|sail\w*|coast|harbou?r)\b/i, sea],
  [/\b(city|street|building|town|house|skyline|car|office|road|tower|neon)\b/i, city],
  [/\b(forest|trees?|woods?|garden|jungle|park|pine|leaf|leaves)\b/i, forest],
  [/\b(space|planets?|stars?|galaxy|orbit|universe|robot|rocket|atom|cosmos|astronaut)\b/i, orbits],
  [/\b(mountains?|hills?|valley|landscape|desert|field|meadow|sunset|sunrise|horse|sheep)\b/i, hills],
  [/\b(pattern|abstract|geometric|logo|icon|tiles?|mosaic|bauhaus|poster)\b/i, tiles],
];

export function makeScene(prompt: string, canvas: Canvas, palette: Palette, random: Random): Scene {
  const byChance = random.pick([hills, sea, city, forest, orbits, tiles]);
  const make = SCENES.find(([words]) => words.test(prompt))?.[1] ?? byChance;
  return make(canvas, palette, random);
}

function hills(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const sky = skyWith(canvas, palette, random);
  const layers = palette.shades.map((fill, depth) => {
    const line = ridge(random, height * (0.44 + depth * 0.14), height * (0.13 - depth * 0.022), width / random.between(0.9, 1.8));
    return (seconds: number) => `<path d="${belowLine(canvas, (x) => line(x + seconds * width * 0.012 * (depth + 1)))}" fill="${fill}"/>`;
  });
  return (seconds) => sky(seconds) + layers.map((layer) => layer(seconds)).join("");
}

function sea(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const sky = skyWith(canvas, palette, random);
  const bands = palette.shades.map((fill, depth) => {
    const length = width / random.between(3, 6);
    const [phase, speed] = [random.between(0, 6), random.between(0.8, 1.6)];
    const line = (x: number, seconds: number) =>
      height * (0.56 + depth * 0.11) + Math.sin((x / length) * 6.28 + phase + seconds * speed) * height * (0.008 + depth * 0.006);
    return (seconds: number) => `<path d="${belowLine(canvas, (x) => line(x, seconds))}" fill="${fill}" fill-opacity=".93"/>`;
  });
  const boatAt = random.between(0.2, 0.7) * width;
  const size = Math.min(width, height) * random.between(0.1, 0.16);
  const [hull = "", sail = ""] = palette.accents;
  const boat = (seconds: number) => {
    const x = boatAt + seconds * width * 0.02;
    const y = height * 0.66 + Math.sin(seconds * 1.4) * height * 0.008;
    const tilt = Math.sin(seconds * 1.4 + 1) * 3;
    return (
      `<g transform="translate(${at(x)} ${at(y)}) rotate(${at(tilt)}) scale(${at(size)})">` +
      `<path d="M-.6 0H.6L.4 .28H-.4Z" fill="${hull}"/><path d="M-.02 -.06V-1L.5 -.06Z" fill="${sail}"/><path d="M-.08 -.06V-.8L-.42 -.06Z" fill="#fff" fill-opacity=".85"/></g>`
    );
  };
  return (seconds) => {
    const [far = "", middle = "", near = "", nearest = ""] = bands.map((band) => band(seconds));
    return sky(seconds) + far + middle + boat(seconds) + near + nearest;
  };
}

function city(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const sky = skyWith(canvas, palette, random);
  const rows = [palette.shades[1], palette.shades[2], palette.shades[3]].map((fill, depth) => {
    const houses: string[] = [];
    for (let x = -width * 0.05; x < width; ) {
      const wide = width * random.between(0.05, 0.11);
      const high = height * random.between(0.2, 0.52) * (1 - depth * 0.2);
      houses.push(house(random, x, height - high, wide * 0.94, high, palette.light, depth));
      x += wide;
    }
    return `<g fill="${fill}">${houses.join("")}</g>`;
  });
  const lights = Array.from({ length: 3 }, () => ({ y: random.between(0.94, 0.98), speed: random.between(0.05, 0.16), at: random.next() }));
  return (seconds) => {
    const cars = lights.map(({ y, speed, at: start }) => {
      const x = ((start + seconds * speed) % 1) * width;
      return `<rect x="${at(x)}" y="${at(y * height)}" width="${at(width * 0.03)}" height="${at(height * 0.012)}" rx="2" fill="${palette.accents[0]}"/>`;
    });
    return sky(seconds) + rows.join("") + cars.join("");
  };
}

function house(random: Random, x: number, y: number, wide: number, high: number, light: string, depth: number): string {
  const windows: string[] = [];
  const step = wide / 4;
  for (let row = y + step; row < y + high - step && windows.length < 60; row += step * 1.3) {
    for (let column = 0; column < 3; column += 1) {
      if (random.next() < 0.55) {
        windows.push(
          `<rect x="${at(x + step * (column + 0.65))}" y="${at(row)}" width="${at(step * 0.55)}" height="${at(step * 0.7)}" fill="${light}" fill-opacity="${at(0.35 + depth * 0.2)}"/>`,
        );
      }
    }
  }
  return `<rect x="${at(x)}" y="${at(y)}" width="${at(wide)}" height="${at(high)}"/>${windows.join("")}`;
}

function forest(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const sky = skyWith(canvas, palette, random);
  const layers = palette.shades.map((fill, depth) => {
    const trees = Array.from({ length: 16 - depth * 3 }, () => ({
      x: random.next() * width,
      size: height * (0.2 + depth * 0.1) * random.between(0.7, 1.2),
      sway: random.between(0, 6),
    }));
    const ground = height * (0.62 + depth * 0.12);
    return (seconds: number) => {
      const shapes = trees.map(({ x, size, sway }) => {
        const lean = Math.sin(seconds * 1.3 + sway) * 1.4;
        return (
          `<g transform="translate(${at(x)} ${at(ground + size * 0.12)}) rotate(${at(lean)}) scale(${at(size)})">` +
          '<path d="M0 -1L.16 -.66H.08L.22 -.36H.11L.27 -.04H-.27L-.11 -.36H-.22L-.08 -.66H-.16Z"/></g>'
        );
      });
      return `<g fill="${fill}"><rect x="0" y="${at(ground)}" width="${width}" height="${at(height - ground)}"/>${shapes.join("")}</g>`;
    };
  });
  return (seconds) => sky(seconds) + layers.map((layer) => layer(seconds)).join("");
}

function orbits(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const side = Math.min(width, height);
  const [x, y] = [width * random.between(0.4, 0.6), height * random.between(0.36, 0.48)];
  const stars = starField(canvas, random, 90);
  const tilt = random.between(-24, 24);
  const bodies = Array.from({ length: random.integer(4, 6) }, (_, index) => ({
    radius: side * (0.15 + index * 0.075),
    size: side * random.between(0.014, 0.042),
    start: random.between(0, 6.28),
    speed: random.between(0.5, 1.1) / (index + 1),
    fill: random.pick([...palette.accents, palette.light]),
  }));
  return (seconds) => {
    const paths = bodies.map(({ radius, size, start, speed, fill }) => {
      const angle = start + seconds * speed;
      const ring = `<ellipse rx="${at(radius)}" ry="${at(radius * 0.42)}" fill="none" stroke="#fff" stroke-opacity=".28" stroke-width="${at(side * 0.003)}"/>`;
      return `${ring}<circle cx="${at(Math.cos(angle) * radius)}" cy="${at(Math.sin(angle) * radius * 0.42)}" r="${at(size)}" fill="${fill}"/>`;
    });
    return (
      `<rect width="${width}" height="${height}" fill="${palette.shades[3]}"/><rect width="${width}" height="${height}" fill="#050714" fill-opacity=".72"/>${stars}` +
      `<g transform="translate(${at(x)} ${at(y)}) rotate(${at(tilt)})"><circle r="${at(side * 0.16)}" fill="${palette.light}" fill-opacity=".18"/>` +
      `<circle r="${at(side * 0.1)}" fill="${palette.main}"/>${paths.join("")}</g>`
    );
  };
}

function tiles(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const side = Math.max(width, height) / random.integer(5, 8);
  const colours = [...palette.shades, ...palette.accents, palette.light] as const;
  const cells: { x: number; y: number; quarter: number; back: string; front: string; form: number; turnAt: number }[] = [];
  for (let y = 0; y < height; y += side) {
    for (let x = 0; x < width; x += side) {
      const [back, front] = [random.pick(colours), random.pick(colours)];
      cells.push({ x, y, quarter: random.integer(0, 3), back, front, form: random.integer(0, 3), turnAt: random.between(0, 8) });
    }
  }
  const forms = [
    '<path d="M-.5 -.5A1 1 0 0 1 .5 .5H-.5Z"/>',
    '<circle r=".34"/>',
    '<path d="M-.5 -.5H.5L-.5 .5Z"/>',
    '<path d="M-.5 -.5A.5 .5 0 0 1 .5 -.5ZM-.5 .5A.5 .5 0 0 1 .5 .5Z"/>',
  ];
  return (seconds) =>
    cells
      .map(({ x, y, quarter, back, front, form, turnAt }) => {
        const turn = quarter * 90 + 90 * smoothStep(seconds - turnAt);
        return (
          `<g transform="translate(${at(x + side / 2)} ${at(y + side / 2)}) scale(${at(side + 0.6)})"><rect x="-.5" y="-.5" width="1" height="1" fill="${back}"/>` +
          `<g transform="rotate(${at(turn)})" fill="${front}">${forms[form] ?? ""}</g></g>`
        );
      })
      .join("");
}

/** The sky with its sun or moon, which sinks slowly, and clouds or stars. */
function skyWith(canvas: Canvas, palette: Palette, random: Random): Scene {
  const { width, height } = canvas;
  const side = Math.min(width, height);
  const [x, y, radius] = [width * random.between(0.18, 0.82), height * random.between(0.14, 0.34), side * random.between(0.07, 0.12)];
  const [top, middle, low] = palette.sky;
  const gradient =
    `<defs><linearGradient id="sky" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="${top}"/><stop offset=".45" stop-color="${middle}"/>` +
    `<stop offset=".75" stop-color="${low}"/></linearGradient></defs><rect width="${width}" height="${height}" fill="url(#sky)"/>`;
  const stars = palette.isNight ? starField(canvas, random, 70) : "";
  const clouds = Array.from({ length: palette.isNight ? 2 : 4 }, () => ({
    x: random.next() * width,
    y: height * random.between(0.06, 0.36),
    size: side * random.between(0.06, 0.12),
    speed: width * random.between(0.01, 0.03),
  }));
  return (seconds) => {
    const lightY = at(y + seconds * height * 0.008);
    const drawn = clouds.map(({ x: start, y: top, size, speed }) => {
      const left = ((start + seconds * speed + size * 2) % (width + size * 4)) - size * 2;
      return `<g transform="translate(${at(left)} ${at(top)}) scale(${at(size)})"><ellipse rx="1.3" ry=".36"/><circle cx="-.35" cy="-.22" r=".42"/><circle cx=".3" cy="-.32" r=".52"/></g>`;
    });
    return (
      `${gradient}${stars}<circle cx="${at(x)}" cy="${lightY}" r="${at(radius * 1.9)}" fill="${palette.light}" fill-opacity=".2"/>` +
      `<circle cx="${at(x)}" cy="${lightY}" r="${at(radius)}" fill="${palette.light}"/><g fill="#fff" opacity="${palette.isNight ? 0.12 : 0.7}">${drawn.join("")}</g>`
    );
  };
}

function starField({ width, height }: Canvas, random: Random, count: number): string {
  const scale = Math.min(width, height) / 1_000;
  const stars = Array.from({ length: count }, () => {
    const [x, y, radius] = [random.next() * width, random.next() * height, random.between(0.7, 2.6) * scale];
    return `<circle cx="${at(x)}" cy="${at(y)}" r="${at(radius)}" fill-opacity="${at(random.between(0.3, 1))}"/>`;
  });
  return `<g fill="#fff">${stars.join("")}</g>`;
}

/** A line of hills: three waves on each other. */
function ridge(random: Random, level: number, rise: number, length: number): (x: number) => number {
  const waves = [1, 2.3, 5.1].map((pitch) => ({ pitch, phase: random.between(0, 6.28), part: 1 / pitch }));
  return (x) => level + waves.reduce((sum, { pitch, phase, part }) => sum + Math.sin((x / length) * 3.14 * pitch + phase) * rise * part, 0);
}

function belowLine({ width, height }: Canvas, line: (x: number) => number): string {
  const step = Math.max(2, width / 96);
  let path = `M0 ${height}`;
  for (let x = 0; x <= width + step; x += step) path += `L${at(x)} ${at(line(x))}`;
  return `${path}L${at(width + step)} ${height}Z`;
}

function smoothStep(value: number): number {
  const clipped = Math.min(1, Math.max(0, value));
  return clipped * clipped * (3 - 2 * clipped);
}

/** Short numbers, and no `-0` or exponents that a renderer may not read. */
function at(value: number): string {
  return String(Math.round(value * 1_000) / 1_000 + 0);
}
