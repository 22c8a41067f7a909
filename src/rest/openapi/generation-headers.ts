/** Headers of generations. `headers.ts` of the REST face sets them. */

const text = (description: string) => ({ description, schema: { type: "string" } });

export const GENERATION_HEADERS = {
  "X-Generation-Id": text("The ID of the generation, `request_id` in usage."),
  "X-Model-Used": text(
    "The ID of the model that answered. Absent on a stream whose headers were sent (after 5 s) before any model answered, and on answers of a job.",
  ),
  "X-Fallback": text("The ID of the model that answered, when it was a fallback of the requested model."),
  "X-Upstream": text("The upstream that served: its ID, or `community` for a registered model. Absent where `X-Model-Used` is."),
  "X-Vendor-Key": text("The ID of the account's vendor key that served. Absent where a key of the operator did."),
  "X-Cost": text("The charge in credits. For a stream, `usage.cost` of the last chunk."),
  "X-App-Margin": text("The part of the charge that is the margin of the app that the key was granted to, in credits. Absent without one."),
  "X-Cut": text("`max_cost` when the answer was cut there. For a stream, `cut` of the `receipt`."),
  "X-Cache": text(
    "`HIT` or `MISS` of the content cache, which serves only GET requests. A replay for an `Idempotency-Key` repeats the first answer's value and has `X-Idempotent-Replay`.",
  ),
  "X-RateLimit-Limit-Requests": text("The tightest limit of requests that renews. Absent without one, as the following are."),
  "X-RateLimit-Remaining-Requests": text("The rest of it, without this request."),
  "X-RateLimit-Reset-Requests": text("When all of it is there again, such as `6m0s` or `20ms`."),
  "X-RateLimit-Limit-Tokens": text("The tightest limit of tokens that renews."),
  "X-RateLimit-Remaining-Tokens": text("The rest of it, without the tokens that this request is expected to use."),
  "X-RateLimit-Reset-Tokens": text("When all of it is there again."),
  "Server-Timing": text(
    "Milliseconds spent in the gateway (`gateway`) and in the upstream (`upstream`). In the headers of a stream, up to that moment; `receipt` has the totals.",
  ),
} as const;
