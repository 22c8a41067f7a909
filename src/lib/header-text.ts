/**
 * Writes text of clients and upstreams into headers. Each place has its own alphabet: beyond it Node refuses to send the answer
 * (ERR_INVALID_CHAR), or the reader sees another value. No other code writes such text into a header (test/contract/header-texts.test.ts).
 */

interface Alphabet {
  /** Characters that are not allowed there. */
  readonly foreign: RegExp;
  /** Returns their replacement. */
  readonly instead: (characters: string) => string;
}

const ALPHABETS = {
  /** A whole value for people: printable ASCII (RFC 9110, 5.5). */
  value: { foreign: /[^\x20-\x7e]/g, instead: () => "?" },
  /** The same, stored and compared later. */
  userAgent: { foreign: /[^\x20-\x7e]/g, instead: () => "" },
  /** Between quotes: the same without quotes and backslashes, because some readers know no escapes (RFC 6750, 3). */
  quoted: { foreign: /[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, instead: () => "'" },
  /** `filename` between quotes: nor percent signs, which some readers decode, nor slashes, which would name a folder (RFC 6266, 4.3). */
  fileName: { foreign: /[^\x20-\x7e]|["\\%/]/g, instead: () => "_" },
  /** `filename*`: UTF-8, percent-encoded (RFC 8187, 3.2.1). */
  extended: { foreign: /[^A-Za-z0-9._~!-]+/g, instead: percentEncode },
} as const satisfies Record<string, Alphabet>;

export type HeaderPlace = keyof typeof ALPHABETS;

/** Replaces the characters that are not allowed at that place. */
export function headerText(place: HeaderPlace, text: string): string {
  const { foreign, instead }: Alphabet = ALPHABETS[place];
  return text.replace(foreign, instead);
}

/** The header Content-Disposition (RFC 6266) for any name: an ASCII form, and the exact name beside it where they differ. */
export function toDisposition(kind: "inline" | "attachment", name: string): string {
  const plain = headerText("fileName", name);
  const extended = plain === name ? "" : `; filename*=UTF-8''${headerText("extended", name)}`;
  return `${kind}; filename="${plain}"${extended}`;
}

/** Whether a peer's identifier can be sent back in a header unchanged: visible ASCII without spaces. */
export function isHeaderToken(text: string, charsMax: number): boolean {
  return text.length <= charsMax && VISIBLE_ASCII.test(text);
}

const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** A lone surrogate becomes U+FFFD. */
function percentEncode(characters: string): string {
  let encoded = "";
  for (const byte of Buffer.from(characters)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return encoded;
}
