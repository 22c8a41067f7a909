/** The headers of generations, as the OpenAPI document describes them. `headers.ts` of the REST face makes them. */

const text = (description: string) => ({ description, schema: { type: "string" } });

export const GENERATION_HEADERS = {
  "X-Generation-Id": text("The generation's own id, which is `request_id` in usage."),
  "X-Model-Used": text(
    "The id of the model that served. Missing of a stream that nobody had begun to answer when its head left (5 s), and of what is answered by a job.",
  ),
  "X-Fallback": text("The same, when it was a fallback of the model that was called."),
  "X-Cost": text("What was charged, in credits. A stream tells it as `usage.cost` of its last chunk."),
  "X-Cache": text(
    "`HIT` or `MISS`, of the content cache, from which only GETs are answered. The replay of an `Idempotency-Key` says what the first answer said, and has `X-Idempotent-Replay`.",
  ),
  "Server-Timing": text(
    "Milliseconds: `gateway`, the gateway's own, and `upstream`. At the head of a stream, until then; its `receipt` has the rest.",
  ),
} as const;

const REFERENCES = Object.fromEntries(Object.keys(GENERATION_HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** Of the operations that generate: those that take an `Idempotency-Key`, and the GETs that the content cache answers. */
export function generationHeadersOf(isGeneration: boolean | undefined, path: string): { readonly headers?: typeof REFERENCES } {
  return isGeneration || /^\/(?:text|image|video|audio)\/\{/.test(path) ? { headers: REFERENCES } : {};
}
