/** The header Content-Disposition (RFC 6266), for a name of any characters. */

/** What a quoted string takes without escapes: printable ASCII without the quote, the backslash, and the percent sign, which some readers decode. */
const PLAIN = /[^\x20-\x7e]|["\\%/]/g;

/** In ASCII: the name as far as that goes, and as UTF-8 beside it when it does not. */
export function toDisposition(kind: "inline" | "attachment", name: string): string {
  const plain = name.replace(PLAIN, "_");
  const extended = plain === name ? "" : `; filename*=UTF-8''${percentEncode(name)}`;
  return `${kind}; filename="${plain}"${extended}`;
}

/** RFC 8187: attr-char stays, every other byte is written in hexadecimal. */
function percentEncode(text: string): string {
  let encoded = "";
  for (const byte of new TextEncoder().encode(text)) {
    const character = String.fromCharCode(byte);
    encoded += /[A-Za-z0-9!#$&+.^_`|~-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}
