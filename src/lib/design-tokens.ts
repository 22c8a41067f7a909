/**
 * Design tokens as custom properties: colours, type and shapes of the dashboard and of the pages without scripts. Every pair of text and
 * background has a contrast of at least 4.5 (WCAG 2.2 AA).
 */

interface Palette {
  /** Text, and secondary text. */
  readonly ink: string;
  readonly soft: string;
  /** Backgrounds: of the page, of panels, and on hover. */
  readonly paper: string;
  readonly card: string;
  readonly hover: string;
  readonly line: string;
  /** Inputs, and their border, which has a contrast of 3 with its surroundings. */
  readonly field: string;
  readonly edge: string;
  /** Buttons, and their text. */
  readonly strong: string;
  readonly "on-strong": string;
  readonly good: string;
  readonly warn: string;
  readonly bad: string;
  readonly note: string;
  readonly focus: string;
}

const LIGHT: Palette = {
  ink: "#16202c",
  soft: "#56657a",
  paper: "#f4f6f9",
  card: "#ffffff",
  hover: "#edf1f6",
  line: "#d3dae4",
  field: "#ffffff",
  edge: "#7d8ca0",
  strong: "#0b5cad",
  "on-strong": "#ffffff",
  good: "#1b7340",
  warn: "#8a5a00",
  bad: "#b3261e",
  note: "#fff6dd",
  focus: "#0b5cad",
};

const DARK: Palette = {
  ink: "#e8edf4",
  soft: "#a3b1c4",
  paper: "#10161e",
  card: "#19212c",
  hover: "#222c39",
  line: "#36424f",
  field: "#10161e",
  edge: "#66768a",
  strong: "#6fb1f5",
  "on-strong": "#0b1622",
  good: "#6fd39a",
  warn: "#f0c060",
  bad: "#ff9a92",
  note: "#33290f",
  focus: "#9cccff",
};

const SHAPES = {
  font: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  mono: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  radius: "0.5rem",
  "radius-card": "0.75rem",
  /** The dashboard's frame: height of its header, and width of its navigation. */
  "frame-top": "52px",
  "frame-side": "232px",
  mark: "linear-gradient(180deg, var(--strong) 55%, var(--line) 55%)",
};

function properties(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `--${name}: ${value};`)
    .join(" ");
}

/** A style sheet that follows the system's colour scheme. */
export const SYSTEM_TOKENS = `:root { ${properties({ ...LIGHT })} ${properties(SHAPES)} }
@media (prefers-color-scheme: dark) {
  :root { ${properties({ ...DARK })} }
}`;

/** A style sheet that follows the scheme in `attribute` of the root element. */
export function chosenTokens(attribute: string): string {
  return `:root { ${properties({ ...LIGHT })} ${properties(SHAPES)} }
:root[${attribute}="dark"] { ${properties({ ...DARK })} }`;
}

/** The logo beside the name, on the backgrounds above. */
export const MARK_STYLE = ".mark { width: 1.1rem; height: 1.1rem; border-radius: 0.3rem; background: var(--mark); }";

/** The logo as the icon of a page. */
export const MARK_URL =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='9' rx='3' fill='%230b5cad'/%3E%3Crect y='8' width='16' height='8' rx='3' fill='%23d3dae4'/%3E%3C/svg%3E";
