/**
 * Safety features in a realtime session (docs/spec/safety.md): each text that the caller writes is looked at before it
 * goes on. Unspecified: what is said cannot be read, so a session with any feature takes no audio from the caller.
 */
import type { RequestContext } from "../../../context.js";
import { AppError } from "../../../errors.js";
import { JSON_DEPTH_MAX } from "../../../limits.js";
import type { Model } from "../../catalog/model.js";
import type { Admission } from "../admission.js";

/** Fields of a caller's events whose texts a model reads. */
const TEXT_FIELDS: ReadonlySet<string> = new Set(["text", "instructions", "transcript", "arguments", "output", "description", "prompt"]);
/** Whatever holds sound: appended to the buffer, or a part of a message. */
const AUDIO = /"(?:input_audio_buffer\.append|input_audio|audio)"\s*:\s*"|"input_audio_buffer\.append"/;

/** Everything in an event that the caller wrote and the model will read. */
export function writtenTexts(event: unknown): string[] {
  const texts: string[] = [];
  rewriteTexts(event, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

export class RealtimeSafety {
  constructor(
    private readonly ctx: RequestContext,
    private readonly model: Model,
    private readonly safe: string | null,
    private readonly admission: Admission,
  ) {}

  /** The event as it may go on. Throws CONTENT_BLOCKED, BAD_REQUEST or SERVICE_UNAVAILABLE. */
  async check(event: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    if (AUDIO.test(JSON.stringify(event))) {
      throw new AppError("CONTENT_BLOCKED", "Safety features cannot read audio: send text, or choose a model that requires none.");
    }
    const written = writtenTexts(event);
    if (written.length === 0) return event;
    const { texts } = await this.admission.check(this.ctx, this.model, written, this.safe);
    let next = 0;
    return rewriteFields(event, () => texts[next++] ?? "", JSON_DEPTH_MAX);
  }
}

/** A copy with each text rewritten, always in the same order. */
function rewriteTexts(value: unknown, rewrite: (text: string) => string, levels = JSON_DEPTH_MAX): unknown {
  if (levels === 0 || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => rewriteTexts(item, rewrite, levels - 1));
  return rewriteFields({ ...value }, rewrite, levels);
}

function rewriteFields(
  fields: Readonly<Record<string, unknown>>,
  rewrite: (text: string) => string,
  levels: number,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, inner]) =>
      typeof inner === "string" && TEXT_FIELDS.has(name) ? [name, rewrite(inner)] : [name, rewriteTexts(inner, rewrite, levels - 1)],
    ),
  );
}
