/**
 * Replicate answers a prediction that takes longer than a minute before it is finished, and its package's pictures do not wait for
 * it. This `fetch` does: whoever starts a prediction is answered with its end.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isRecord } from "../openai/json.js";
import { ProviderError } from "../provider.js";

type Fetch = typeof globalThis.fetch;

const UNFINISHED = new Set(["starting", "processing"]);
const STOPPED = new Set(["failed", "canceled", "aborted"]);
const POLL_MS = 1_000;

export function waitingFetch(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method !== "POST" || !response.ok) return response;
    const { headers } = init;
    const signal = init.signal ?? undefined;
    for (let bytes = await response.arrayBuffer(); ; ) {
      const prediction = toPrediction(bytes);
      if (STOPPED.has(prediction.status)) throw stopped(prediction);
      const address = UNFINISHED.has(prediction.status) ? prediction.address : null;
      if (address === null) return new Response(bytes, { status: response.status, headers: response.headers });
      await sleep(POLL_MS, undefined, { signal });
      const next = await fetch(address, { ...(headers && { headers }), ...(signal && { signal }) });
      if (!next.ok) return next;
      bytes = await next.arrayBuffer();
    }
  };
}

function toPrediction(bytes: ArrayBuffer) {
  const value = parse(bytes);
  const urls = isRecord(value.urls) ? value.urls : {};
  const { status, error } = value;
  return {
    status: typeof status === "string" ? status : "",
    address: typeof urls.get === "string" ? urls.get : null,
    error: typeof error === "string" ? error : "",
  };
}

function parse(bytes: ArrayBuffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function stopped({ status, error }: { readonly status: string; readonly error: string }): ProviderError {
  const upstreamMessage = error === "" ? `The prediction is ${status}.` : error.slice(0, 1_000);
  return new ProviderError("status", "The upstream gave up on its answer.", { status: 502, upstreamMessage });
}
