/** POST /v1/audio/speech: OpenAI's wire format (docs/spec/audio.md#speech), answered as the speech is made. */
import type { RequestContext } from "../../context.js";
import type { Exchange } from "../../http/exchange.js";
import { drained } from "../../lib/back-pressure.js";
import { SLOW_READER_TIMEOUT_MS } from "../../limits.js";
import { countCharacters, speechInput } from "../../services/generation/media/speech.js";
import type { SpokenStream } from "../../services/generation/media/speech-stream.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { toSpeechEvents } from "../presenters/speech.js";
import type { Route } from "../route.js";
import { sendSpeechEvents } from "../streaming.js";

export function addSpeechRoutes(route: Route, endpoint: Endpoint, { speech }: Pick<Services, "speech">): void {
  route("/v1/audio/speech", {
    POST: endpoint({
      isGeneration: true,
      body: speechInput,
      handler: (ctx, { body, exchange }) => {
        const stream = speech.stream(ctx, body);
        exchange.setHeaders({ "X-Usage-Characters": String(countCharacters(body.input)) });
        if (body.stream_format !== "sse") return sendSpeech(exchange, ctx, stream);
        return sendSpeechEvents(exchange, ctx, stream, toSpeechEvents(stream, body.input));
      },
    }),
  });
}

/**
 * What it costs is known when it begins, so its headers carry that. Rejects while nothing has been sent; after that, a failure
 * breaks the answer off, as there is no other way to say in a sound that it is not whole.
 */
async function sendSpeech(exchange: Exchange, ctx: RequestContext, { opened, chunks }: SpokenStream): Promise<void> {
  const { res } = exchange;
  const leave = () => void chunks.return?.().then(ignore, ignore);
  ctx.signal.addEventListener("abort", leave, { once: true });
  if (ctx.signal.aborted) leave();
  try {
    // With the first piece and not before it: until then a failure is answered like any other.
    let next = await chunks.next();
    const { contentType, quote } = await opened;
    exchange.setHeaders(receiptHeaders(quote));
    exchange.writeHead(200, { "Content-Type": contentType });
    for (; !next.done; next = await chunks.next()) {
      if (!res.write(next.value)) await drained(res, SLOW_READER_TIMEOUT_MS);
    }
    res.end();
  } catch (error) {
    await chunks.return?.();
    throw error;
  } finally {
    ctx.signal.removeEventListener("abort", leave);
  }
}

function ignore(): void {}
