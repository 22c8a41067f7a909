/**
 * The one look of everything that the gateway shows to people: the dashboard and the pages without scripts take their colours, type and
 * shapes from here, as custom properties. Every pair of a text and its ground has a contrast of 4.5 or more (WCAG 2.2 AA).
 */

interface Palette {
  /** Text, and text that explains. */
  readonly ink: string;
  readonly soft: string;
  /** Behind everything, behind what stands on it, and behind what is pointed at. */
  readonly paper: string;
  readonly card: string;
  readonly hover: string;
  readonly line: string;
  /** What is typed into, and its border, which has a contrast of 3 with what is around it. */
  readonly field: string;
  readonly edge: string;
  /** What can be pressed, and the text on it. */
  readonly strong: string;
  readonly "on-strong": string;
  readonly good: string;
  readonly warn: string;
  readonly bad: string;
  /** Behind a remark. */
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
  edge: "#8594a8",
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
  /** The dashboard's frame: its header's height, and the width of the navigation beside the page. */
  "frame-top": "52px",
  "frame-side": "232px",
  mark: "linear-gradient(180deg, var(--strong) 55%, var(--line) 55%)",
};

function properties(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `--${name}: ${value};`)
    .join(" ");
}

/** A style sheet that follows the scheme of the system. */
export const SYSTEM_TOKENS = `:root { ${properties({ ...LIGHT })} ${properties(SHAPES)} }
@media (prefers-color-scheme: dark) {
  :root { ${properties({ ...DARK })} }
}`;

/** A style sheet that follows the scheme which the root element names in `attribute`. */
export function chosenTokens(attribute: string): string {
  return `:root { ${properties({ ...LIGHT })} ${properties(SHAPES)} }
:root[${attribute}="dark"] { ${properties({ ...DARK })} }`;
}

/** The mark beside the name, on the ground of the tokens above. */
export const MARK_STYLE = ".mark { width: 1.1rem; height: 1.1rem; border-radius: 0.3rem; background: var(--mark); }";

/** The mark, as the icon of a page. */
export const MARK_URL =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='9' rx='3' fill='%230b5cad'/%3E%3Crect y='8' width='16' height='8' rx='3' fill='%23d3dae4'/%3E%3C/svg%3E";
