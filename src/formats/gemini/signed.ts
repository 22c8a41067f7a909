/**
 * `thoughtSignature` of parts. One of Google's own is passed unchanged both ways. Any other vendor's is the encoding of
 * `formats/signatures.ts`, in base64 once more, because clients in Python and Go decode the field.
 */
import { isRecord, recordsOf } from "../../lib/json.js";
import type { Signed, SignedReader } from "../signatures.js";

type Loose = Readonly<Record<string, unknown>>;

/** Starts an encoding of this gateway. */
const OWN = /^sluice\d+\./;
const OWN_CHARS = 16;

export interface ReadSignature extends Signed {
  /** Google's own; null for ours. */
  readonly google: string | null;
}

export function wrapSignature(encoded: string): string {
  return Buffer.from(encoded).toString("base64");
}

export function readSignature(signature: string, reader: SignedReader): ReadSignature {
  const start = Buffer.from(signature.slice(0, OWN_CHARS), "base64").toString("latin1");
  if (!OWN.test(start)) return { google: signature, thoughts: [], calls: new Map() };
  return { google: null, ...reader.read(Buffer.from(signature, "base64").toString("latin1")) };
}

/** What Google signed in a call or a thought of a chat, by its name there or in its SDK; null for other vendors. */
export function googleSignatureIn(extra: unknown): string | null {
  const google = isRecord(extra) ? extra.google : null;
  if (!isRecord(google)) return null;
  const signature = google.thought_signature ?? google.thoughtSignature;
  return typeof signature === "string" && signature !== "" ? signature : null;
}

export function toGoogleExtra(signature: string): Loose {
  return { google: { thought_signature: signature } };
}

/** A signed text as a detail of a chat's reasoning: the chat has no place for it in the text. */
export function toSignedDetail(signature: string): Loose {
  return { type: "reasoning.encrypted", data: signature, extra_content: toGoogleExtra(signature) };
}

/** Parts of tools that Google runs, in `extra_content` of a chat's message. */
export function foreignPartsIn(extra: unknown): readonly Loose[] {
  return isRecord(extra) && isRecord(extra.google) ? recordsOf(extra.google.parts) : [];
}
