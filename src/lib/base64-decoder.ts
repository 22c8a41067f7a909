/** Decodes base64 in pieces, strictly (RFC 4648, 4): standard alphabet, padded, no white space, no bits left over. */

export class Base64Error extends Error {
  override readonly name = "Base64Error";
}

const QUAD_CHARS = 4;
const ALPHABET = /^[A-Za-z0-9+/]*$/;

export class Base64Decoder {
  /** An incomplete quad, and the last one: only the final quad may be padded. */
  private held = "";

  /** Returns the decoded bytes so far. Throws Base64Error. */
  push(text: string): Buffer {
    const all = this.held + text;
    const rest = all.length % QUAD_CHARS || QUAD_CHARS;
    const cut = Math.max(0, all.length - rest);
    this.held = all.slice(cut);
    const certain = all.slice(0, cut);
    if (!ALPHABET.test(certain)) throw new Base64Error();
    return Buffer.from(certain, "base64");
  }

  /** Returns the bytes of the final quad. Throws Base64Error. */
  end(): Buffer {
    const bytes = Buffer.from(this.held, "base64");
    if (bytes.toString("base64") !== this.held) throw new Base64Error();
    return bytes;
  }
}
