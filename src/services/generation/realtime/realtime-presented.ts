/** An upstream's realtime event as its caller is told it: models bear the catalog's ids, whatever they are called there. */
import { isRecord } from "../../../providers/openai/json.js";
import { inCallersWords, type Served } from "../attempts.js";
import { replacedAt, TRANSCRIPTION_PATHS, valueAt } from "./realtime-rules.js";

type Fields = Readonly<Record<string, unknown>>;

export interface RealtimeNames {
  /** Whose upstream it is. */
  readonly served: Served;
  /** The id that the session was opened with. */
  readonly modelId: string;
  /** Of what transcribes the caller's audio; null: nothing that they asked for. */
  readonly transcriberId: string | null;
}

/** Without the vendor's credential, too. */
export function presentedEvent(event: Fields, names: RealtimeNames): Fields {
  let told = event;
  if (isRecord(event.session)) told = { ...told, session: presentedSession(event.session, names) };
  if (isRecord(event.response)) told = { ...told, response: renamed(event.response, ["model"], names.modelId) };
  if (isRecord(event.error)) told = { ...told, error: presentedError(event.error, names.served) };
  return renamed(told, ["model"], names.modelId);
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

/** What is named there is named so; what is not stays as it is. */
function renamed(holder: Fields, path: readonly string[], name: string | null): Fields {
  return typeof valueAt(holder, path) === "string" ? replacedAt(holder, path, name) : holder;
}
