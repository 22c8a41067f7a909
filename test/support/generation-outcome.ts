/** The outcome of a generation as its caller reads it from the face's answer: headers, a body, events, a job. */

import { type Answer, ok, subscribeSse, type Target } from "../graphql/client.js";
import { GenerationProgressDocument } from "../operations/generated/graphql.js";
import type { Answer as RestAnswer } from "../rest/client.js";

export interface GenerationOutcome {
  /** Of HTTP. */
  readonly status: number;
  readonly headers: Headers;
  /** The whole body, byte by byte, as Latin-1. */
  readonly text: string;
  /** Null: it succeeded. */
  readonly code: string | null;
  readonly message: string | null;
  readonly generationId: string | null;
  /** In credits; null where none is reported. */
  readonly cost: string | null;
  readonly isReplay: boolean;
}

/** The code of an answer that ends before its end, which says nothing of why. */
export const BROKEN_OFF = "BROKEN_OFF";

interface WireError {
  /** In Gemini's format a number, with the code as `reason`. */
  readonly code: string | number;
  readonly reason?: string;
  readonly message: string;
}

function codeOf({ code, reason }: WireError): string {
  return reason ?? String(code);
}

/** An answer of REST, to its end. */
export async function readRestOutcome(response: Response): Promise<GenerationOutcome> {
  const { status, headers } = response;
  const { text, isCut } = await readBody(response);
  const isReplay = headers.get("x-idempotent-replay") === "true";
  const outcome = { status, headers, text, isReplay, generationId: headers.get("x-generation-id") };
  const type = headers.get("content-type") ?? "";
  if (isCut) return { ...outcome, code: BROKEN_OFF, message: null, cost: null };
  if (status >= 400) return { ...outcome, ...errorOf(text), cost: null };
  if (type.startsWith("text/event-stream")) return { ...outcome, ...readEventsOutcome(text) };
  const idOfJob = type.startsWith("application/json") ? (JSON.parse(text) as { readonly id?: string }).id : undefined;
  return { ...outcome, generationId: outcome.generationId ?? idOfJob ?? null, code: null, message: null, cost: headers.get("x-cost") };
}

/** An upgrade that was refused. */
export function toRefusedOutcome({ status, headers, text }: RestAnswer): GenerationOutcome {
  return { status, headers, text, ...errorOf(text), generationId: null, cost: null, isReplay: false };
}

/** A mutation's answer, or every result of a subscription. */
export async function readGraphQLOutcome(response: Response, field: string): Promise<GenerationOutcome> {
  const { status, headers } = response;
  const { text } = await readBody(response);
  const isLive = headers.get("content-type")?.startsWith("text/event-stream");
  const results = (isLive ? dataOf(text) : [text]).map((data) => JSON.parse(data) as GraphQLAnswer);
  const failure = results.flatMap(({ errors = [] }) => errors).at(-1);
  const payloads = results.flatMap(({ data }) => data?.[field] ?? []) as Payload[];
  const receipt = payloads.findLast((payload) => payload.receipt)?.receipt;
  return {
    ...{ status, headers, text },
    code: failure?.extensions.code ?? null,
    message: failure?.message ?? null,
    generationId: receipt?.generationId ?? payloads.map(({ generationId, job }) => generationId ?? job?.restId).find(Boolean) ?? null,
    cost: receipt?.cost ?? null,
    isReplay: results[0]?.extensions?.idempotentReplay === true,
  };
}

interface GraphQLAnswer extends Answer {
  readonly extensions?: { readonly idempotentReplay?: boolean };
}

interface Payload {
  readonly job?: { readonly restId: string };
  readonly generationId?: string;
  readonly receipt?: { readonly generationId: string; readonly cost: string } | null;
}

/** What became of a job that was started: it is watched to its end. */
export async function followJob(target: Target, started: GenerationOutcome): Promise<GenerationOutcome> {
  if (started.code !== null) return started;
  const answers = await subscribeSse(target, GenerationProgressDocument, { id: String(started.generationId) }).rest();
  const job = ok(answers.at(-1) ?? null).generationProgress;
  return { ...started, code: job.error?.code ?? null, message: job.error?.message ?? null, cost: job.receipt?.cost ?? null };
}

async function readBody(response: Response): Promise<{ readonly text: string; readonly isCut: boolean }> {
  const pieces: Uint8Array[] = [];
  let isCut = false;
  try {
    for await (const piece of response.body ?? []) pieces.push(piece);
  } catch {
    isCut = true;
  }
  return { text: Buffer.concat(pieces).toString("latin1"), isCut };
}

function errorOf(text: string): Pick<GenerationOutcome, "code" | "message"> {
  const { error } = JSON.parse(text) as { readonly error: WireError };
  return { code: codeOf(error), message: error.message };
}

/** The data of each event but `[DONE]`. */
function dataOf(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => line.slice("data: ".length));
}

interface WireEvent {
  readonly error?: WireError | null;
  readonly usage?: { readonly cost?: number } | null;
  readonly usageMetadata?: { readonly cost?: number };
  readonly response?: { readonly usage?: { readonly cost?: number } | null };
}

/** Chunks of a chat, events of a response, answers in Gemini's format, or events of speech. */
function readEventsOutcome(text: string): Pick<GenerationOutcome, "code" | "message" | "cost"> {
  const events = dataOf(text).map((data) => JSON.parse(data) as WireEvent);
  const failure = events.find(({ error }) => error)?.error;
  const cost = events
    .map(({ usage, usageMetadata, response }) => usage?.cost ?? usageMetadata?.cost ?? response?.usage?.cost)
    .findLast((amount) => amount !== undefined);
  return { code: failure ? codeOf(failure) : null, message: failure?.message ?? null, cost: cost === undefined ? null : String(cost) };
}
