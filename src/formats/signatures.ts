/**
 * What a vendor signed in an answer (thoughts and calls), as one opaque text (`encrypted_content` of a reasoning item, `signature` of a thinking block), and back. Clients return it
 * unchanged; it holds nothing that a chat's client does not see, so it is encoded only.
 */
import { isRecord } from "../lib/json.js";
import { BoundedJson } from "../lib/json-bounds.js";
import { ownValue, setOwnValue } from "../lib/own-values.js";
import { JSON_BOUNDS } from "../limits.js";

type Loose = Readonly<Record<string, unknown>>;

/** Marks content of this gateway; other content belongs to another vendor. */
const PREFIX = "sluice1.";
/** Fields of `reasoning_details` that a vendor checks. */
const SIGNED = ["signature", "data", "extra_content"] as const;
/** Fields of a detail that arrive in pieces. */
const GROWING: ReadonlySet<string> = new Set(["text", "summary", "data"]);

export interface Signed {
  /** `reasoning_details` of the chat's message. */
  readonly thoughts: readonly Loose[];
  /** `extra_content` by call id. */
  readonly calls: ReadonlyMap<string, Loose>;
}

export class Signatures {
  /** By their `index`, or in order. */
  private readonly thoughts = new Map<unknown, Record<string, unknown>>();
  private readonly calls = new Map<string, Loose>();
  /** A thought since the last time is signed. */
  private isSigned = false;

  /** `details` are `reasoning_details`, whole or in pieces. */
  addThoughts(details: unknown): void {
    if (!Array.isArray(details)) return;
    for (const detail of details) if (isRecord(detail)) this.addThought(detail);
  }

  addCall(callId: string, extra: Loose): void {
    this.calls.set(callId, extra);
  }

  /** The thoughts since the last time, if any of them is signed. */
  takeThoughts(): string | null {
    // Asked after each thought, of which there may be many.
    if (!this.isSigned) return null;
    const thoughts = [...this.thoughts.values()];
    this.thoughts.clear();
    this.isSigned = false;
    return encode({ thoughts });
  }

  /** Nothing since the last time is signed. */
  get isEmpty(): boolean {
    return !this.isSigned && this.calls.size === 0;
  }

  /** Everything since the last time; null when nothing is signed. */
  take(): string | null {
    if (this.isEmpty) return null;
    const thoughts = [...this.thoughts.values()].filter(hasSignature);
    const calls = [...this.calls];
    this.thoughts.clear();
    this.calls.clear();
    this.isSigned = false;
    return encode({ ...(thoughts.length > 0 && { thoughts }), ...(calls.length > 0 && { calls }) });
  }

  private addThought(detail: Loose): void {
    this.isSigned ||= hasSignature(detail);
    const key = detail.index ?? `${this.thoughts.size}.`;
    const known = this.thoughts.get(key);
    if (!known) {
      this.thoughts.set(key, { ...detail });
      return;
    }
    for (const [name, value] of Object.entries(detail)) {
      const before = ownValue(known, name);
      setOwnValue(known, name, GROWING.has(name) && typeof before === "string" && typeof value === "string" ? before + value : value);
    }
  }
}

function hasSignature(thought: Loose): boolean {
  return SIGNED.some((name) => thought[name] != null);
}

/** Unspecified: of one request, what is decoded of its reasoning items; more is ignored, as that of another vendor. */
const DECODED_BYTES_MAX = 8 * 1024 * 1024;
/** Unspecified: commas, brackets and braces in it, which bound its values. */
const DECODED_MARKS_MAX = 200_000;
const MARKS: ReadonlySet<number> = new Set([..."[{,"].map((mark) => mark.charCodeAt(0)));

/** Reads what reasoning items of one request hold, within one bound for all of them. */
export class SignedReader {
  private bytesLeft = DECODED_BYTES_MAX;
  private marksLeft = DECODED_MARKS_MAX;

  /** Empty for content of another vendor. */
  read(encrypted: unknown): Signed {
    const { thoughts, calls } = this.decode(encrypted);
    return {
      thoughts: Array.isArray(thoughts) ? thoughts.filter(isThought) : [],
      calls: new Map(Array.isArray(calls) ? calls.filter(isCall) : []),
    };
  }

  private decode(encrypted: unknown): Loose {
    if (typeof encrypted !== "string" || !encrypted.startsWith(PREFIX) || encrypted.length > this.bytesLeft) return {};
    this.bytesLeft -= encrypted.length;
    const bytes = Buffer.from(encrypted.slice(PREFIX.length), "base64url");
    for (const byte of bytes) if (MARKS.has(byte)) this.marksLeft -= 1;
    if (this.marksLeft < 0) return {};
    try {
      const content: unknown = new BoundedJson(JSON_BOUNDS).parse(bytes.toString());
      return isRecord(content) ? content : {};
    } catch {
      return {};
    }
  }
}

function isThought(thought: unknown): thought is Loose {
  return isRecord(thought) && typeof thought.type === "string";
}

function isCall(entry: unknown): entry is [string, Loose] {
  return Array.isArray(entry) && typeof entry[0] === "string" && isRecord(entry[1]);
}

function encode(content: Loose): string {
  return PREFIX + Buffer.from(JSON.stringify(content)).toString("base64url");
}
