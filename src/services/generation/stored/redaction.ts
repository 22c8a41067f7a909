/** Redacts a response for its storage as the safety features redacted its request: the generation had a copy in another format. */

import type { RequestContext } from "../../../context.js";
import type { ResponseObject } from "../../../formats/openai-responses/answer.js";
import type { StoredItem } from "../../../formats/openai-responses/stored-items.js";
import { copyJson } from "../../../lib/json.js";
import { ownValue, setOwnValue } from "../../../lib/own-values.js";
import type { Passages } from "../../safety/passages.js";
import type { Safety, SafetyReport } from "../../safety/safety.js";

export interface StoredTexts {
  readonly items: readonly StoredItem[];
  readonly response: ResponseObject;
}

/** Texts of a client or a tool. */
const TEXTS: ReadonlySet<string> = new Set(["text", "content", "arguments", "output", "input", "refusal", "instructions"]);
/** Bytes, or the address of a file. */
const CONTENTS: ReadonlySet<string> = new Set(["image_url", "file_data", "file_url", "data"]);
/** Words of the format, references, and what a vendor signed. */
const FIXED: ReadonlySet<string> = new Set([
  ...["type", "role", "status", "id", "call_id", "name", "namespace", "detail", "format", "encrypted_content", "signature"],
]);

/** Returns copies when something was redacted. Rejects as the safety features do. */
export async function redact(
  safety: Pick<Safety, "check">,
  ctx: RequestContext,
  report: SafetyReport | null,
  texts: StoredTexts,
): Promise<StoredTexts> {
  if (report === null || report.redacted.length === 0) return texts;
  const copy = copyJson({ items: texts.items, instructions: texts.response.instructions, metadata: texts.response.metadata });
  const read = (into: Passages) => readFields(copy, into, "input");
  await safety.check(read, report.redacted, NEVER, ctx.log);
  const { items, instructions, metadata } = copy;
  return { items, response: { ...texts.response, instructions, metadata } };
}

const NEVER = new AbortController().signal;

/** The depth of JSON is bounded where it is read. */
function readFields(holder: object, into: Passages, param: string): void {
  for (const name of Object.keys(holder)) {
    const value = ownValue(holder as Readonly<Record<string, unknown>>, name);
    if (typeof value === "object" && value !== null) readFields(value, into, param);
    else if (!FIXED.has(name)) readField(name, value, holder, into, param);
  }
}

function readField(name: string, value: unknown, holder: object, into: Passages, param: string): void {
  if (typeof value === "string" && TEXTS.has(name)) {
    into.text(param, value, (after) => setOwnValue(holder as Record<string, unknown>, name, after));
  } else if (CONTENTS.has(name)) into.media(param, value, holder, name);
  else into.field(param, value, holder, name);
}
