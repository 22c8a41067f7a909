/**
 * Rules for a client's realtime events (docs/spec/credits.md#billed-fields): a field that changes the session's model, kind or price, or
 * makes the vendor call others, is refused by name. Fields without a price pass.
 *
 * Events with unlisted names are refused, because their cost is unknown.
 */
import { AppError, invalidInput, wrongField } from "../../../errors.js";
import { sayChoices } from "../../../lib/issue-words.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue } from "../../../lib/own-values.js";
import { BILLED_FIELDS, canonicalName } from "../../catalog/billed-fields.js";
import type { Model } from "../../catalog/model.js";
import { isTakenBySome, refuseUntaken } from "../../catalog/taken-fields.js";
import { inCallersWords, type Served } from "../failures.js";

type Fields = Readonly<Record<string, unknown>>;

/** Client events of OpenAI's format, general and beta. */
export const CALLER_EVENTS: ReadonlySet<string> = new Set([
  "session.update",
  "conversation.item.create",
  "conversation.item.delete",
  "conversation.item.retrieve",
  "conversation.item.truncate",
  "input_audio_buffer.append",
  "input_audio_buffer.clear",
  "input_audio_buffer.commit",
  "output_audio_buffer.clear",
  "response.create",
  "response.cancel",
]);

const ANOTHER_PRICE = "It would change what the session costs, or who answers in it.";
/** Fields of `session` and `response` that are refused, and why. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["prompt", "Prompts that are stored with the vendor bring models and tools of their own: write them into instructions."],
  ["client_secret", "The gateway hands out no credentials of the vendor's."],
  ["provider_options", ANOTHER_PRICE],
]);

/** Left out: clients send it unasked (`"auto"`), and it changes no answer. Traces would be kept with the vendor. */
const LEFT_OUT = "tracing";

/** Paths of a session's transcription settings, in the general and the beta form. */
const TRANSCRIPTION_PATHS = [["audio", "input", "transcription"], ["input_audio_transcription"]] as const;

export interface RealtimeRules {
  readonly model: Model;
  /** Ids and aliases of the session's own model, which a session may repeat. */
  readonly modelNames: ReadonlySet<string>;
  /**
   * Called with the model of a transcription, or null when it names none. Returns the upstream's name; throws for a model that may not
   * transcribe here, naming `param`.
   */
  readonly transcribeWith: (name: string | null, param: string) => Promise<string>;
  readonly transcribeNoMore: () => void;
}

export interface Permitted {
  /** To be sent. */
  readonly event: Fields;
  /** Refuses only a transcription, which the event lacks therefore; null: nothing is refused. */
  readonly refusal: AppError | null;
}

/** Throws BAD_REQUEST for an event that is not to be sent. */
export async function permitted(event: Fields, rules: RealtimeRules): Promise<Permitted> {
  const { type } = event;
  if (typeof type !== "string" || !CALLER_EVENTS.has(type)) {
    throw wrongField("type", sayChoices([...CALLER_EVENTS]));
  }
  if (type === "session.update" && isRecord(event.session)) {
    const { session, refusal } = await permittedSession(event.session, rules);
    return { event: { ...event, session }, refusal };
  }
  if (type === "response.create" && isRecord(event.response)) {
    return { event: { ...event, response: permittedResponse(event.response, rules) }, refusal: null };
  }
  return { event, refusal: null };
}

interface PermittedSession {
  readonly session: Fields;
  readonly refusal: AppError | null;
}

async function permittedSession(session: Fields, rules: RealtimeRules): Promise<PermittedSession> {
  if (isStated(session.type) && session.type !== "realtime") {
    throw invalidInput("Only conversations have a price: a session is of the type realtime.", "session.type");
  }
  const own = permittedFields(session, "session", rules);
  return withTranscription(own, rules);
}

/**
 * Throws BAD_REQUEST for settings that no session of the model may have; without a model, of any model. A transcription that is refused ends
 * no session.
 */
export function assertSettings(settings: Fields, model: Model | null): void {
  if (model !== null) permittedFields(settings, "session", { model, modelNames: NO_NAMES });
  else assertTools(settings, "session");
}

const NO_NAMES: ReadonlySet<string> = new Set();

function permittedResponse(response: Fields, rules: RealtimeRules): Fields {
  for (const path of TRANSCRIPTION_PATHS) {
    if (isStated(valueAt(response, path))) throw invalidInput("Transcription is set up with session.update.", `response.${path.join(".")}`);
  }
  return permittedFields(response, "response", rules);
}

/** Removes the model if it is the session's own, and refuses others. */
function permittedFields(holder: Fields, path: string, { model: own, modelNames }: Pick<RealtimeRules, "model" | "modelNames">): Fields {
  const { model, [LEFT_OUT]: _, ...others } = holder;
  if (isStated(model) && !(typeof model === "string" && modelNames.has(model))) {
    throw invalidInput("A session keeps the model that it was opened with.", `${path}.model`);
  }
  assertTools(others, path);
  for (const [name, value] of Object.entries(others)) {
    const billed = BILLED_FIELDS.realtime.get(canonicalName(name));
    if (billed && isStated(value) && !billed.isHarmless(value, own)) throw invalidInput(ANOTHER_PRICE, `${path}.${name}`);
    if (!billed && isStated(value) && !isTakenBySome(own, name)) throw refuseUntaken(own, name, `${path}.${name}`);
  }
  return others;
}

function assertTools(holder: Fields, path: string): void {
  for (const [name, reason] of REFUSED) if (isStated(ownValue(holder, name))) throw invalidInput(reason, `${path}.${name}`);
  assertFunctions(holder.tools, `${path}.tools`);
}

/** The vendor calls hosted tools and MCP servers at its own prices and with its own credentials. */
function assertFunctions(tools: unknown, path: string): void {
  if (!isStated(tools)) return;
  if (!Array.isArray(tools)) throw wrongField(path, "expected an array");
  for (const [index, tool] of tools.entries()) {
    const type: unknown = isRecord(tool) ? (tool.type ?? "function") : null;
    if (type !== "function") throw invalidInput("Only functions have a price: a tool is of the type function.", `${path}.${index}.type`);
  }
}

/**
 * Names the upstream's model. A transcription that is refused is left out by itself: SDKs add one to each session, and without the rest of
 * the update an agent would answer without its instructions and tools.
 */
async function withTranscription(session: Fields, rules: RealtimeRules): Promise<PermittedSession> {
  let own = session;
  let refusal: AppError | null = null;
  for (const path of TRANSCRIPTION_PATHS) {
    const stated = valueAt(session, path);
    if (stated === undefined) continue;
    if (stated === null) {
      rules.transcribeNoMore();
      continue;
    }
    try {
      own = replacedAt(own, path, await permittedTranscription(stated, `session.${path.join(".")}`, rules));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      refusal ??= error;
      own = replacedAt(own, path, undefined);
    }
  }
  return { session: own, refusal };
}

async function permittedTranscription(stated: unknown, param: string, rules: RealtimeRules): Promise<Fields> {
  if (!isRecord(stated)) throw wrongField(param, "expected an object or null");
  const { model: name = null } = stated;
  if (name !== null && typeof name !== "string") throw wrongField(`${param}.model`, "expected a string");
  return { ...stated, model: await rules.transcribeWith(name, `${param}.model`) };
}

function isStated(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function valueAt(holder: Fields, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (isRecord(value) ? ownValue(value, name) : undefined), holder);
}

/** A copy with the existing value at the path replaced; undefined removes it, as the copy is sent as JSON. */
function replacedAt(holder: Fields, [name, ...rest]: readonly string[], value: unknown): Fields {
  if (name === undefined) return holder;
  const inner = ownValue(holder, name);
  return { ...holder, [name]: rest.length > 0 && isRecord(inner) ? replacedAt(inner, rest, value) : value };
}

// An upstream's event as presented to the client, with the catalog's model ids.

interface RealtimeNames {
  /** The model that answers. */
  readonly served: Served;
  readonly modelId: string;
  /** The requested transcription model; null: none. */
  readonly transcriberId: string | null;
}

/** Also removes the vendor's credential. */
export function presentedEvent(event: Fields, names: RealtimeNames): Fields {
  let presented = event;
  if (isRecord(event.session)) presented = { ...presented, session: presentedSession(event.session, names) };
  if (isRecord(event.response)) presented = { ...presented, response: renamed(event.response, ["model"], names.modelId) };
  if (isRecord(event.error)) presented = { ...presented, error: presentedError(event.error, names.served) };
  return renamed(presented, ["model"], names.modelId);
}

function presentedSession(session: Fields, { modelId, transcriberId }: RealtimeNames): Fields {
  const { client_secret: _, ...rest } = session;
  let own = renamed(rest, ["model"], modelId);
  for (const path of TRANSCRIPTION_PATHS) own = renamed(own, [...path, "model"], transcriberId);
  return own;
}

function presentedError(error: Fields, served: Served): Fields {
  return typeof error.message === "string" ? { ...error, message: inCallersWords(error.message, served) } : error;
}

/** Replaces the name at the path, if it exists. */
function renamed(holder: Fields, path: readonly string[], name: string | null): Fields {
  return typeof valueAt(holder, path) === "string" ? replacedAt(holder, path, name) : holder;
}
