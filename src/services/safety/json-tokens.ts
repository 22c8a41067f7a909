/** The names and values of a JSON text, each of which can be replaced without changing the rest. */

const QUOTE = '"';
const BACKSLASH = "\\";

export interface JsonToken {
  readonly text: string;
  readonly kind: "name" | "text" | "number";
  /** Offsets in the JSON text, the end exclusive. */
  readonly start: number;
  readonly end: number;
}

class JsonTokens {
  constructor(
    private readonly source: string,
    readonly list: readonly JsonToken[],
  ) {}

  /** The text with the tokens at these indexes replaced by strings. */
  rewritten(changed: ReadonlyMap<number, string>): string {
    const parts: string[] = [];
    let copied = 0;
    for (const [index, { start, end }] of this.list.entries()) {
      const after = changed.get(index);
      if (after === undefined) continue;
      parts.push(this.source.slice(copied, start), JSON.stringify(after));
      copied = end;
    }
    parts.push(this.source.slice(copied));
    return parts.join("");
  }
}

const BEGINS_NESTED = /^\s*[{[]/;
const NUMBER = /-?\d[\d.eE+-]*/y;
const COLON = /\s*:/y;

/** Null for text that is no JSON object or list. */
export function jsonTokens(text: string): JsonTokens | null {
  if (!BEGINS_NESTED.test(text) || !isJson(text)) return null;
  const list: JsonToken[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (letter === QUOTE) {
      const end = endOfString(text, at);
      const raw = text.slice(at, end);
      COLON.lastIndex = end;
      const stands = raw.includes(BACKSLASH) ? String(JSON.parse(raw)) : raw.slice(1, -1);
      list.push({ text: stands, kind: COLON.test(text) ? "name" : "text", start: at, end });
      at = end - 1;
    } else if (letter === "-" || (letter >= "0" && letter <= "9")) {
      NUMBER.lastIndex = at;
      NUMBER.test(text);
      const end = NUMBER.lastIndex;
      list.push({ text: text.slice(at, end), kind: "number", start: at, end });
      at = end - 1;
    }
  }
  return new JsonTokens(text, list);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The offset after the closing quote of the string at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (letter === BACKSLASH) at += 1;
    else if (letter === QUOTE) return at + 1;
  }
  return text.length;
}
