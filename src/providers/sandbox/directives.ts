/**
 * Directives in square brackets in the last user message, which control the sandbox (docs/sandbox-models.md). Other brackets are ordinary
 * text.
 */
import { setOwnValue } from "../../lib/own-values.js";
import { refuse } from "./refusal.js";

export interface Directives {
  /** Before the first token. */
  readonly delayMs: number;
  /** Between two chunks. */
  readonly paceMs: number;
  /** Fails with this status before anything is sent. */
  readonly failStatus: number | null;
  /** Failure during the answer. */
  readonly trouble: Trouble | null;
  readonly tools: readonly string[];
  /** Usage to report, by its name in the directive. */
  readonly tokens: Readonly<Record<string, number>>;
  readonly reportsUsage: boolean;
  /** Number of chunks; null: one per word. */
  readonly chunks: number | null;
  /** The reasoning before the answer. */
  readonly thought: string;
  /** The answer, when the prompt dictates it. */
  readonly text: string | null;
  /** The prompt without its directives. */
  readonly prompt: string;
}

export interface Trouble {
  readonly kind: "hang" | "cut" | "error";
  /** Content chunks sent before; null: half of them (none for a hang). */
  readonly afterChunks: number | null;
}

/** Directives are at the start of a message, so that long prompts are not searched. */
const DIRECTIVES_CHARS = 10_000;
const WAIT_MS_MAX = 600_000;
const CHUNKS_MAX = 10_000;
/** Longest text that a prompt may dictate. */
const SAID_CHARS_MAX = 200_000;

/** Names for a `[tokens ...]` directive. */
export const TOKEN_NAMES: ReadonlySet<string> = new Set([
  "in",
  "out",
  "cached",
  "cache_write",
  "audio_in",
  "image_in",
  "reasoning",
  "audio_out",
  "image_out",
]);

type Read = (groups: readonly string[], found: Directives) => Partial<Directives>;

/** The form of each directive without brackets, and its effect. */
const RULES: readonly (readonly [RegExp, Read])[] = [
  [/^delay (\d+(?:\.\d+)?)(ms|s)$/, ([amount = "", unit = ""]) => ({ delayMs: toMs(amount, unit) })],
  [/^pace (\d+(?:\.\d+)?)(ms|s)$/, ([amount = "", unit = ""]) => ({ paceMs: toMs(amount, unit) })],
  [/^fail ([45]\d\d)$/, ([status]) => ({ failStatus: Number(status) })],
  [/^(hang|cut)(?: after (\d{1,5}))?$/, ([kind, after]) => ({ trouble: toTrouble(kind, after) })],
  [/^(error) (?:mid-stream|after (\d{1,5}))$/, ([kind, after]) => ({ trouble: toTrouble(kind, after) })],
  [/^tool ([\w.-]{1,64})$/, ([name = ""], { tools }) => ({ tools: [...tools, name] })],
  [/^tokens((?: [a-z_]+=-?\d+(?:\.\d+)?)+)$/, ([amounts = ""], { tokens }) => ({ tokens: { ...tokens, ...toAmounts(amounts) } })],
  [/^no usage$/, () => ({ reportsUsage: false })],
  [/^chunks (\d{1,6})$/, ([count]) => ({ chunks: toCount(Number(count)) })],
  [/^think (\d{1,7}) (.+)$/, ([count, word = ""]) => ({ thought: repeat(Number(count), word) })],
  [/^repeat (\d{1,7}) (.+)$/, ([count, word = ""]) => ({ text: repeat(Number(count), word) })],
];

const BRACKETS = /\[([a-z][^[\]\n]{0,400})\]/g;

const NONE: Directives = {
  delayMs: 0,
  paceMs: 0,
  failStatus: null,
  trouble: null,
  tools: [],
  tokens: {},
  reportsUsage: true,
  chunks: null,
  thought: "",
  text: null,
  prompt: "",
};

export function parseDirectives(prompt: string): Directives {
  let found = NONE;
  let echoes = false;
  const head = prompt.slice(0, DIRECTIVES_CHARS);
  const rest = head.replace(BRACKETS, (whole, inside: string) => {
    const read = readDirective(inside, found);
    if (inside === "echo") echoes = true;
    else if (read === null) return whole;
    found = { ...found, ...read };
    return "";
  });
  const said = (rest + prompt.slice(DIRECTIVES_CHARS)).trim();
  if (echoes && said.length > SAID_CHARS_MAX) throw tooMuch();
  return { ...found, prompt: said, text: echoes ? said : found.text };
}

/** Null when the text in brackets is no directive. */
function readDirective(inside: string, found: Directives): Partial<Directives> | null {
  for (const [form, read] of RULES) {
    const match = form.exec(inside);
    if (match !== null) return read(match.slice(1), found);
  }
  return null;
}

function toMs(amount: string, unit: string): number {
  const ms = Number(amount) * (unit === "s" ? 1_000 : 1);
  if (ms > WAIT_MS_MAX) throw refuse(`The sandbox waits ${WAIT_MS_MAX} ms at most.`, "messages");
  return ms;
}

function toTrouble(kind: string | undefined, after: string | undefined): Trouble {
  return { kind: kind === "hang" || kind === "cut" ? kind : "error", afterChunks: after === undefined ? null : Number(after) };
}

function toAmounts(text: string): Record<string, number> {
  const amounts: Record<string, number> = {};
  for (const pair of text.trim().split(" ")) {
    const [name = "", amount] = pair.split("=");
    if (!TOKEN_NAMES.has(name)) throw refuse(`Unknown kind of token "${name}": use ${[...TOKEN_NAMES].join(", ")}.`, "messages");
    setOwnValue(amounts, name, Number(amount));
  }
  return amounts;
}

function toCount(chunks: number): number {
  if (chunks < 1 || chunks > CHUNKS_MAX) throw refuse(`The sandbox sends 1 to ${CHUNKS_MAX} chunks.`, "messages");
  return chunks;
}

function repeat(count: number, word: string): string {
  if (count * (word.length + 1) > SAID_CHARS_MAX) throw tooMuch();
  return Array.from({ length: count }, () => word).join(" ");
}

function tooMuch(): Error {
  return refuse(`The sandbox says ${SAID_CHARS_MAX} characters at most.`, "messages");
}
