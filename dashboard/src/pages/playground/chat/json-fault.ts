/** Position of the first JSON syntax error. Browsers report it differently, and some not at all. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

const SPACE = /[ \t\r\n]*/y;
const SCALAR =
  /"(?:[\x20\x21\x23-\x5b\x5d-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

type Expected =
  | "a value"
  | 'a value or "]"'
  | "a name in quotes"
  | 'a name in quotes or "}"'
  | '":"'
  | '"," or "]"'
  | '"," or "}"'
  | "the end"
  | "a closing quote";

/** Null for valid JSON. */
export function findJsonFault(text: string): JsonFault | null {
  const open: ("[" | "{")[] = [];
  let at = 0;
  let expected: Expected = "a value";
  const afterValue = (): Expected => {
    const inner = open.at(-1);
    return inner === undefined ? "the end" : inner === "[" ? '"," or "]"' : '"," or "}"';
  };
  for (;;) {
    at = endOf(SPACE, text, at) ?? at;
    const next = text[at];
    if (next === undefined) return expected === "the end" ? null : placeOf(text, at, expected);
    const isClosing = (next === "]" || next === "}") && expected.includes(`"${next}"`);
    if (isClosing) {
      open.pop();
      expected = afterValue();
    } else if (next === "," && expected.startsWith('","')) expected = open.at(-1) === "[" ? "a value" : "a name in quotes";
    else if (next === ":" && expected === '":"') expected = "a value";
    else if ((next === "[" || next === "{") && expected.startsWith("a value")) {
      open.push(next);
      expected = next === "[" ? 'a value or "]"' : 'a name in quotes or "}"';
    } else {
      const isName = expected.startsWith("a name");
      const end = isName && next !== '"' ? null : endOf(SCALAR, text, at);
      const isTakingText = isName || expected.startsWith("a value");
      if (end === null || !isTakingText) return placeOf(text, at, isTakingText && next === '"' ? "a closing quote" : expected);
      at = end;
      expected = isName ? '":"' : afterValue();
      continue;
    }
    at += 1;
  }
}

function endOf(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}

function placeOf(text: string, at: number, expected: Expected): JsonFault {
  const lines = text.slice(0, at).split("\n");
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, expected };
}
