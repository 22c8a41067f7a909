/** Quotes of any generation by its REST path, for both faces (docs/spec/quotes.md). */
import { z } from "zod";
import type { Quote, RequestContext } from "../../context.js";
import { serviceUnavailable } from "../../errors.js";
import { requireCaller } from "../access/permissions.js";
import { storableText } from "../requests/input.js";

/** Unspecified. The prompt of a GET is in its path. */
const PATH_CHARS_MAX = 16_384;

export const quoteInput = z.strictObject({
  /** With its query, such as `/v1/chat/completions` or `/text/Hello?model=sandbox/text`. */
  path: storableText.min(1).max(PATH_CHARS_MAX),
  /** That of the request. A file of a form is a data URL. */
  body: z.looseObject({}).nullish(),
});
export type QuoteInput = z.output<typeof quoteInput>;
export type QuotedPath = QuoteInput["path"];

export const NO_REALTIME_QUOTE = "A realtime session has no quote: its length is decided while it runs. Bound it with max_cost.";

/** The routes of REST, which read a body and call the service of its path. */
export interface QuotingRoutes {
  quote(ctx: RequestContext, input: QuoteInput): Promise<Quote>;
}

export class Quotes {
  private routes: QuotingRoutes | null = null;

  includeRoutes(routes: QuotingRoutes): void {
    this.routes = routes;
  }

  /** Rejects as the request itself does, but not for lack of credits. Counts as a request for its rate limits. */
  async quote(ctx: RequestContext, input: QuoteInput): Promise<Quote> {
    requireCaller(ctx);
    if (this.routes === null) throw serviceUnavailable("The gateway is starting.");
    return this.routes.quote(ctx, input);
  }
}
