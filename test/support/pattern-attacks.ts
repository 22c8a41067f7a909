/**
 * Texts that cost a pattern the most, made from the pattern itself: what repeats in it is repeated, alone and together with
 * what must stand before it, and then something comes that does not fit.
 */

type Node =
  | { readonly kind: "set"; readonly source: string }
  | { readonly kind: "sequence"; readonly items: readonly Node[] }
  | { readonly kind: "choice"; readonly options: readonly Node[] }
  | { readonly kind: "repeat"; readonly item: Node; readonly min: number; readonly max: number }
  | { readonly kind: "look"; readonly item: Node; readonly isNegative: boolean }
  | { readonly kind: "empty" };

/** More often than this is as good as without end. */
const REPEATS_MANY = 32;
const ENDINGS = ["", "\0", "\n"] as const;
const UNITS_MAX = 14;
const PREFIXES_MAX = 6;

const ASCII = Array.from({ length: 95 }, (_, index) => String.fromCharCode(0x20 + index));
/** Letters and digits first: they read best when a test fails. */
const CHARACTERS = [
  ...ASCII.filter((character) => /[0-9A-Za-z]/.test(character)),
  ...ASCII,
  "\n",
  "\t",
  "\0",
  "é",
  "漢",
  "\u00a0",
  "\u2010",
];

export interface WorstCase {
  /** The repeated text: the longer it is, the fewer times it fits. */
  readonly unit: string;
  /** As a text of about so many characters. */
  text(chars: number): string;
}

export function worstCases(pattern: RegExp): readonly WorstCase[] {
  const tree = parse(pattern.source);
  const sample = sampler(pattern.flags);
  const { prefixes, units } = repetitions(tree, sample);
  const cases = new Map<string, WorstCase>();
  const add = (start: string, unit: string, ending: string) => {
    const text = (chars: number) => start + unit.repeat(Math.ceil(chars / unit.length)) + ending;
    cases.set(text(100), { unit, text });
  };
  for (const start of ["", ...prefixes].slice(0, PREFIXES_MAX)) {
    for (const unit of units) {
      for (const ending of ENDINGS) {
        // The pattern begins once and its repetition continues; or it begins with every repetition.
        add(start, unit, ending);
        add("", start + unit, ending);
      }
    }
  }
  return [...cases.values()];
}

/** What stands before each part that repeats, and texts that such parts are made of. */
function repetitions(tree: Node, sample: Sampler): { readonly prefixes: readonly string[]; readonly units: readonly string[] } {
  const prefixes = new Set<string>();
  const units = new Set<string>();
  const sets = new Set<string>();
  const visit = (node: Node, before: string): string => {
    switch (node.kind) {
      case "set":
        sets.add(node.source);
        return sample(node);
      case "sequence": {
        let text = before;
        for (const item of node.items) text += visit(item, text);
        return text.slice(before.length);
      }
      case "choice": {
        const texts = node.options.map((option) => visit(option, before));
        return texts[0] ?? "";
      }
      case "look": {
        const text = visit(node.item, before);
        return node.isNegative ? "" : text;
      }
      case "repeat": {
        const once = visit(node.item, before);
        if (node.max > REPEATS_MANY) {
          if (before !== "") prefixes.add(before);
          for (const unit of variants(node.item, sample)) units.add(unit);
        }
        return once.repeat(Math.min(Math.max(node.min, 1), REPEATS_MANY));
      }
      default:
        return "";
    }
  };
  visit(tree, "");
  for (const character of distinct(sets, sample)) units.add(character);
  return { prefixes: [...prefixes], units: [...units].filter(Boolean).slice(0, UNITS_MAX) };
}

/** What one round of a repetition may look like. */
function variants(node: Node, sample: Sampler): string[] {
  if (node.kind === "choice") return node.options.flatMap((option) => variants(option, sample));
  return [sample(node)];
}

/** One character for each way in which the sets of a pattern take or leave one. */
function distinct(sets: ReadonlySet<string>, sample: Sampler): string[] {
  const bySignature = new Map<string, string>();
  for (const character of CHARACTERS) {
    const signature = [...sets].map((source) => (sample.matches(source, character) ? "1" : "0")).join("");
    if (signature.includes("1") && !bySignature.has(signature)) bySignature.set(signature, character);
  }
  // What fits most of the sets can be read in most ways.
  const ways = ([signature]: [string, string]) => signature.replaceAll("0", "").length;
  return [...bySignature].sort((one, other) => ways(other) - ways(one)).map(([, character]) => character);
}

interface Sampler {
  (node: Node): string;
  matches(source: string, character: string): boolean;
}

function sampler(flags: string): Sampler {
  const sets = new Map<string, RegExp>();
  const matches = (source: string, character: string) => {
    const known = sets.get(source) ?? new RegExp(`^(?:${source})$`, flags.replace(/[gy]/g, ""));
    sets.set(source, known);
    return known.test(character);
  };
  const sample = (node: Node): string => {
    switch (node.kind) {
      case "set":
        return CHARACTERS.find((character) => matches(node.source, character)) ?? "";
      case "sequence":
        return node.items.map(sample).join("");
      case "choice":
        return node.options.map(sample).find(Boolean) ?? "";
      case "repeat":
        return sample(node.item).repeat(Math.min(Math.max(node.min, 1), REPEATS_MANY));
      case "look":
        return node.isNegative ? "" : sample(node.item);
      default:
        return "";
    }
  };
  return Object.assign(sample, { matches });
}

const GROUP = /\((?:\?(?:(?<look><?[=!])|:|<\w+>))?/y;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;
const BOUNDARY = /\^|\$|\\[bB]|\\k<\w+>|\\[1-9]/y;
const SET = /\[\^?\]|\[(?:\\.|[^\]\\])*\]|\\[pPu]\{[^}]*\}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\c[A-Za-z]|\\.|./suy;

/** As much of the grammar as tells what may repeat. */
function parse(source: string): Node {
  let at = 0;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match) at = pattern.lastIndex;
    return match;
  };
  const parseChoice = (): Node => {
    const options = [parseSequence()];
    while (source[at] === "|") {
      at += 1;
      options.push(parseSequence());
    }
    return options.length === 1 && options[0] ? options[0] : { kind: "choice", options };
  };
  const parseSequence = (): Node => {
    const items: Node[] = [];
    while (at < source.length && source[at] !== "|" && source[at] !== ")") items.push(parseQuantified());
    return { kind: "sequence", items };
  };
  const parseQuantified = (): Node => {
    const item = parseAtom();
    const found = take(QUANTIFIER);
    if (!found) return item;
    const [, sign, least, comma, most] = found;
    const min = sign === undefined ? Number(least) : sign === "+" ? 1 : 0;
    const max =
      sign === "?" ? 1 : sign !== undefined || (comma !== undefined && most === "") ? Number.POSITIVE_INFINITY : Number(most ?? least);
    return { kind: "repeat", item, min, max };
  };
  const parseAtom = (): Node => {
    const group = take(GROUP);
    if (group) {
      const item = parseChoice();
      at += 1;
      const look = group.groups?.look;
      return look === undefined ? item : { kind: "look", item, isNegative: look.endsWith("!") };
    }
    if (take(BOUNDARY)) return { kind: "empty" };
    const set = take(SET);
    if (!set) throw new Error(`This is not read: ${source.slice(at)}`);
    return { kind: "set", source: set[0] };
  };
  const tree = parseChoice();
  if (at !== source.length) throw new Error(`This is not read: ${source.slice(at)}`);
  return tree;
}
