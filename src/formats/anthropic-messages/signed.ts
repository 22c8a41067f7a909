/**
 * Thinking blocks of a history. Their signatures are the encoding of `formats/signatures.ts`, or Anthropic's own in a conversation that began
 * there.
 */
import type { SignedReader } from "../signatures.js";

type Loose = Record<string, unknown>;

export interface ReadThought {
  readonly text: string;
  /** `reasoning_details` of the chat's message. */
  readonly details: readonly Loose[];
  /** `extra_content` by call id. */
  readonly calls: ReadonlyMap<string, unknown>;
}

type ThoughtBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string | null | undefined }
  | { readonly type: "redacted_thinking"; readonly data: string };

/** Starts an encoding of this gateway. */
const OWN = /^sluice\d+\./;

export function readThought(block: ThoughtBlock, reader: SignedReader): ReadThought {
  const isRedacted = block.type === "redacted_thinking";
  const text = isRedacted ? "" : block.thinking;
  const signature = (isRedacted ? block.data : block.signature) ?? "";
  if (OWN.test(signature)) {
    const { thoughts, calls } = reader.read(signature);
    return { text, details: thoughts.map((thought) => ({ ...thought })), calls };
  }
  if (signature === "") return { text, details: [], calls: new Map() };
  const detail = isRedacted
    ? { type: "reasoning.encrypted", data: signature, extra_content: { anthropic: { redactedData: signature } } }
    : { type: "reasoning.text", text, signature, extra_content: { anthropic: { signature } } };
  return { text, details: [detail], calls: new Map() };
}
