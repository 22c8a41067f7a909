/** Where a text stops being JSON: browsers tell it in words of their own, and not always. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** What may stand there. */
  readonly wanted: string;
}

const SPACE = /[ \t\r\n]*/y;
const SCALAR =
  /"(?:[\x20\x21\x23-\x5b\x5d-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

type Wanted =
  | "a value"
  | 'a value or "]"'
  | "a name in quotes"
  | 'a name in quotes or "}"'
  | '":"'
  | '"," or "]"'
  | '"," or "}"'
  | "the end"
  | "a text whose quotes end";

/** Null: it is JSON. */
export function findJsonFault(text: string): JsonFault | null {
  const open: ("[" | "{")[] = [];
  let at = 0;
  let wanted: Wanted = "a value";
  const afterValue = (): Wanted => {
    const inner = open.at(-1);
    return inner === undefined ? "the end" : inner === "[" ? '"," or "]"' : '"," or "}"';
  };
  for (;;) {
    at = endOf(SPACE, text, at) ?? at;
    const next = text[at];
    if (next === undefined) return wanted === "the end" ? null : placeOf(text, at, wanted);
    const isClosing = (next === "]" || next === "}") && wanted.includes(`"${next}"`);
    if (isClosing) {
      open.pop();
      wanted = afterValue();
    } else if (next === "," && wanted.startsWith('","')) wanted = open.at(-1) === "[" ? "a value" : "a name in quotes";
    else if (next === ":" && wanted === '":"') wanted = "a value";
    else if ((next === "[" || next === "{") && wanted.startsWith("a value")) {
      open.push(next);
      wanted = next === "[" ? 'a value or "]"' : 'a name in quotes or "}"';
    } else {
      const isName = wanted.startsWith("a name");
      const end = isName && next !== '"' ? null : endOf(SCALAR, text, at);
      const isTakingText = isName || wanted.startsWith("a value");
      if (end === null || !isTakingText) return placeOf(text, at, isTakingText && next === '"' ? "a text whose quotes end" : wanted);
      at = end;
      wanted = isName ? '":"' : afterValue();
      continue;
    }
    at += 1;
  }
}

function endOf(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}

function placeOf(text: string, at: number, wanted: Wanted): JsonFault {
  const lines = text.slice(0, at).split("\n");
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, wanted };
}
