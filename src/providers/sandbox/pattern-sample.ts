/**
 * Makes a text that matches a plain regular expression of a JSON schema: literals, classes, groups, alternatives, counts. Takes the
 * shortest and first possibility. Refuses lookaround, back references and long results; never runs the expression.
 */
import { ownValue } from "../../lib/own-values.js";
import { refuse } from "./refusal.js";

const SAMPLE_CHARS_MAX = 10_000;
const NESTING_MAX = 50;
const CANDIDATES = ["a", "A", "0", "-", "_", " ", ".", "!", "~", "é"];
/** An example for each class escape, and its test. */
const KINDS: Readonly<Record<string, readonly [string, RegExp]>> = {
  d: ["0", /\d/],
  D: ["a", /\D/],
  w: ["a", /\w/],
  W: ["-", /\W/],
  s: [" ", /\s/],
  S: ["a", /\S/],
};
const CONTROLS: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", "0": "\0" };

export function samplePattern(pattern: string): string {
  const reader = new PatternReader(pattern);
  const sample = reader.alternatives(0);
  if (!reader.isAtEnd) throw refused(pattern);
  return sample;
}

class PatternReader {
  private at = 0;

  constructor(private readonly pattern: string) {}

  get isAtEnd(): boolean {
    return this.at >= this.pattern.length;
  }

  /** The first alternative; the others are skipped. */
  alternatives(nesting: number): string {
    if (nesting > NESTING_MAX) throw refused(this.pattern);
    const sample = this.sequence(nesting);
    while (this.take("|")) this.sequence(nesting);
    return sample;
  }

  private sequence(nesting: number): string {
    let sample = "";
    while (!this.isAtEnd && this.peek() !== "|" && this.peek() !== ")") {
      const atom = this.atom(nesting);
      const count = this.count();
      if (sample.length + atom.length * count > SAMPLE_CHARS_MAX) throw refused(this.pattern);
      sample += atom.repeat(count);
    }
    return sample;
  }

  private atom(nesting: number): string {
    const char = this.next();
    if (char === "^" || char === "$") return "";
    if (char === ".") return "a";
    if (char === "(") return this.group(nesting);
    if (char === "[") return this.characterClass();
    if (char === "\\") return this.escape();
    if (char === "*" || char === "+" || char === "?") throw refused(this.pattern);
    return char;
  }

  private group(nesting: number): string {
    if (this.take("?") && !this.take(":")) {
      const name = /^<[A-Za-z_]\w*>/.exec(this.pattern.slice(this.at, this.at + 100));
      if (name === null) throw refused(this.pattern);
      this.at += name[0].length;
    }
    const sample = this.alternatives(nesting + 1);
    if (!this.take(")")) throw refused(this.pattern);
    return sample;
  }

  private escape(): string {
    const char = this.next();
    const kind = ownValue(KINDS, char);
    if (kind !== undefined) return kind[0];
    if (char === "b") return "";
    if (char === "B" || char === "k" || char === "p" || char === "P" || /[1-9]/.test(char)) throw refused(this.pattern);
    return this.escapedCharacter(char);
  }

  private escapedCharacter(char: string): string {
    const digits = char === "x" ? 2 : char === "u" ? 4 : 0;
    if (digits === 0) return ownValue(CONTROLS, char) ?? char;
    const code = this.pattern.slice(this.at, this.at + digits);
    if (!/^[0-9a-fA-F]+$/.test(code) || code.length < digits) throw refused(this.pattern);
    this.at += digits;
    return String.fromCharCode(Number.parseInt(code, 16));
  }

  private characterClass(): string {
    const isNegated = this.take("^");
    const ranges: (readonly [string, string] | RegExp)[] = [];
    let first: string | null = null;
    while (!this.take("]")) {
      const [low, kind] = this.classMember();
      let high = low;
      if (kind === null && this.peek() === "-" && this.pattern[this.at + 1] !== "]") {
        this.next();
        high = this.classMember()[0];
      }
      first ??= low;
      ranges.push(kind ?? [low, high]);
    }
    if (!isNegated && first !== null) return first;
    const isIn = (char: string) =>
      ranges.some((range) => (range instanceof RegExp ? range.test(char) : range[0] <= char && char <= range[1]));
    const free = CANDIDATES.find((candidate) => isNegated && !isIn(candidate));
    if (free === undefined) throw refused(this.pattern);
    return free;
  }

  private classMember(): readonly [string, RegExp | null] {
    const char = this.next();
    if (char !== "\\") return [char, null];
    const escaped = this.next();
    const kind = ownValue(KINDS, escaped);
    if (kind !== undefined) return kind;
    return [escaped === "b" ? "\b" : this.escapedCharacter(escaped), null];
  }

  /** The smallest allowed count of the previous atom. */
  private count(): number {
    const sign = this.peek();
    let count = 1;
    if (sign === "*" || sign === "?" || sign === "+") {
      this.next();
      count = sign === "+" ? 1 : 0;
    } else {
      const braces = /^\{(\d{1,6})(?:,\d*)?\}/.exec(this.pattern.slice(this.at, this.at + 20));
      if (braces === null) return 1;
      this.at += braces[0].length;
      count = Number(braces[1]);
    }
    this.take("?");
    return count;
  }

  private peek(): string | undefined {
    return this.pattern[this.at];
  }

  private next(): string {
    const char = this.pattern[this.at];
    if (char === undefined) throw refused(this.pattern);
    this.at += 1;
    return char;
  }

  private take(char: string): boolean {
    if (this.peek() !== char) return false;
    this.at += 1;
    return true;
  }
}

function refused(pattern: string): Error {
  return refuse(`The sandbox cannot answer the pattern ${pattern.slice(0, 100)}.`);
}
