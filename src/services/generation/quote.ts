/**
 * The quote of a generation (docs/spec/quotes.md): its request is planned and checked as usual, and where its cost would be held the quote
 * is given instead. Nothing is held, charged, recorded or sent to an upstream.
 */
import type { CostRange, Quote, Quoting, RequestContext } from "../../context.js";
import { deriveContext } from "../../context.js";
import { AppError, invalidInput } from "../../errors.js";
import { formatNanocredits, larger, smaller } from "../../lib/money.js";
import type { Model } from "../catalog/model.js";
import { MULTIPLIER_ONE } from "../catalog/pricing.js";
import type { ChargeRequest } from "../credits/charge-request.js";
import type { GenerationTask } from "./admission.js";
import { isByVendorKey } from "./routing/own-routes.js";

/** Before a limit of the request. */
export interface PlannedCosts extends CostRange {
  readonly notes: readonly string[];
}

interface QuotedPlan extends Pick<GenerationTask, "request" | "model" | "candidates" | "isFree" | "isChargedAsServed"> {
  readonly hold: Pick<ChargeRequest, "estimate" | "least">;
  costs(plan: QuotedPlan): PlannedCosts;
}

/** Ends the work of a request that asks for a quote. */
class QuoteGiven extends Error {
  override readonly name = "QuoteGiven";
}

/**
 * The quote of the work's first generation. Rejects as the work does: without permission, with an invalid input, beyond a rate limit, but
 * not for lack of credits. `work` must use the context that it gets.
 */
export async function quoteFor(ctx: RequestContext, work: (ctx: RequestContext) => Promise<unknown>): Promise<Quote> {
  const quoting: Quoting = { quote: null };
  return quoteFrom(quoting, () => work(deriveContext(ctx, { quoting, maxCost: ctx.maxCost })));
}

/** As `quoteFor`, for work with a context that has `quoting`. */
export async function quoteFrom(quoting: Quoting, work: () => unknown): Promise<Quote> {
  try {
    await work();
  } catch (error) {
    if (quoting.quote === null) throw error;
  }
  if (quoting.quote === null) throw invalidInput("This request generates nothing, so there is no quote for it.");
  return quoting.quote;
}

/** Throws always. */
export function giveQuote(plan: QuotedPlan, quoting: Quoting): never {
  quoting.quote = boundedQuote(plan);
  throw new QuoteGiven("The request asks for a quote.");
}

/** An answer from the content cache. Throws always. */
export function giveFreeQuote({ id, routes: [route] }: Model, quoting: Quoting): never {
  const costs = { least: 0n, expected: 0n, most: 0n };
  quoting.quote = { ...costs, model: id, routes: [{ upstream: route.upstreamName, ...costs }], notes: [CACHED] };
  throw new QuoteGiven("The request asks for a quote.");
}

const CACHED = "The answer is in the content cache, and costs nothing while it is kept.";

/** Without the request's limit. */
function quoteOf(plan: QuotedPlan): Quote {
  const { least: own, expected, most, notes } = plan.costs(plan);
  // The caller's own fallbacks have prices of their own, below those of the hold.
  const served = plan.isChargedAsServed ? plan.candidates.map(({ model }) => plan.costs({ ...plan, model }).least) : [];
  const least = served.reduce(smaller, own);
  const costs = { least: smaller(least, expected), expected, most: larger(most, expected) };
  return toQuote(plan, costs, notes);
}

/**
 * Every route is charged at the price of the requested model, or within the range of those that the caller named; one by a vendor key at
 * its fee of that. The costs are those of the hold, at which calls by vendor keys alone are held already.
 */
function toQuote({ model, candidates }: QuotedPlan, costs: CostRange, notes: readonly string[]): Quote {
  const isFeeHeld = candidates.every(isByVendorKey);
  const routes = new Map<string, Quote["routes"][number]>();
  for (const { route } of candidates) {
    const { upstreamName: upstream, vendorKey } = route;
    const named = { upstream, ...(vendorKey && { vendorKeyId: vendorKey.key.id }) };
    routes.set(JSON.stringify(named), { ...named, ...(vendorKey && !isFeeHeld ? feeOf(costs, vendorKey.feeShare) : costs) });
  }
  const [first = { expected: costs.expected }, ...others] = [...routes.values()];
  const least = others.reduce((lowest, each) => smaller(lowest, each.least), "least" in first ? first.least : costs.least);
  return { least, expected: first.expected, most: costs.most, model: model.id, routes: [...routes.values()], notes };
}

/** Rounded outwards: a charge is rounded once, from the amounts themselves. */
function feeOf({ least, expected, most }: CostRange, share: bigint): CostRange {
  const up = (cost: bigint) => (cost * share + MULTIPLIER_ONE - 1n) / MULTIPLIER_ONE;
  return { least: (least * share) / MULTIPLIER_ONE, expected: up(expected), most: up(most) };
}

function boundedQuote(plan: QuotedPlan): Quote {
  const quote = quoteOf(plan);
  const { maxCost } = plan.request;
  if (maxCost === undefined || plan.isFree) return quote;
  const { nanocredits } = maxCost;
  const { estimate, least = estimate } = plan.hold;
  if (least > nanocredits) {
    const refused = `max_cost is ${formatNanocredits(nanocredits)}: the request would be refused with 402, because ${formatNanocredits(least)} must be held.`;
    return { ...quote, notes: [...quote.notes, refused] };
  }
  if (quote.most <= nanocredits) return quote;
  const capped = <Costs extends CostRange>(costs: Costs): Costs => ({
    ...costs,
    least: smaller(costs.least, nanocredits),
    expected: smaller(costs.expected, nanocredits),
    most: smaller(costs.most, nanocredits),
  });
  return { ...capped(quote), routes: quote.routes.map(capped), notes: [...quote.notes, ...cutNote(plan)] };
}

function cutNote({ model }: QuotedPlan): readonly string[] {
  return model.modality === "text" ? ["The answer is cut where it reaches max_cost."] : [];
}

/** A refusal because of `max_cost` names the most that the generation can cost, and has the quote without that limit. */
export function refusedWithQuote(held: Promise<void>, plan: QuotedPlan): Promise<void> {
  return held.catch((error: unknown) => {
    throw withQuote(error, plan);
  });
}

function withQuote(error: unknown, plan: QuotedPlan): unknown {
  if (!(error instanceof AppError) || error.code !== "MAX_COST_EXCEEDED") return error;
  const quote = toQuoteObject(quoteOf(plan));
  const { code, message, param, details } = error;
  return new AppError(code, message, { ...(param !== undefined && { param }), details: { ...details, most: quote.most, quote } });
}

export interface QuotedRoute extends Record<"upstream" | keyof CostRange, string> {
  readonly vendorKeyId?: string;
}

/** The form of both faces; amounts are decimal strings of credits. */
export interface QuoteObject {
  readonly least: string;
  readonly expected: string;
  readonly most: string;
  readonly currency: "credits";
  readonly model: string;
  readonly routes: readonly QuotedRoute[];
  readonly notes: readonly string[];
}

export function toQuoteObject({ model, routes, notes, ...costs }: Quote): QuoteObject {
  const named = routes.map(({ upstream, vendorKeyId, ...range }) => ({
    upstream,
    ...(vendorKeyId !== undefined && { vendorKeyId }),
    ...toDecimals(range),
  }));
  return { ...toDecimals(costs), currency: "credits", model, routes: named, notes };
}

function toDecimals({ least, expected, most }: CostRange) {
  return { least: formatNanocredits(least), expected: formatNanocredits(expected), most: formatNanocredits(most) };
}
