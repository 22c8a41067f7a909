/**
 * Hints for unknown paths: a base URL without /v1 or with two of them, a typo, or a route of another API that this gateway lacks. The route
 * is public, so the work is bounded: a limited number of characters is compared, with each route once.
 */
import { distance } from "fastest-levenshtein";
import { toTemplate } from "./route.js";

/** Unspecified: longer paths are not compared. */
const PATH_CHARS_MAX = 200;
const SEGMENTS_MAX = 8;
/** Allowed typos: one in this many letters of a route, up to a maximum. */
const LETTERS_PER_SLIP = 4;
const SLIPS_MAX = 4;

export interface ServedRoute {
  /** Express's form: `/keys/:id`, `/text/*prompt`. */
  readonly path: string;
  readonly methods: Readonly<Record<string, unknown>>;
}

interface Template {
  readonly shown: string;
  readonly segments: readonly string[];
  readonly methods: readonly string[];
  /** Letters that may be wrong. */
  readonly slipsMax: number;
}

const CHAT = "POST /v1/chat/completions";
/** Routes of OpenAI's API and others: the path below /v1, and the alternative here. */
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([
  ["edits", `${CHAT} edits a text that it is given in a message.`],
  ["files", "Files are sent with the request that needs them; the media host keeps those that are uploaded to it."],
  ["uploads", "Files are sent with the request that needs them; the media host keeps those that are uploaded to it."],
  ["assistants", "POST /v1/responses answers a conversation with tools; POST /account/agents makes an agent of your own."],
  ["threads", "POST /v1/responses answers a conversation that is sent whole in input."],
  ["conversations", "POST /v1/responses answers a conversation that is sent whole in input."],
  ["batches", "Requests are sent one by one, as many at once as you like; an Idempotency-Key makes it safe to repeat one."],
  ["vector_stores", "POST /v1/embeddings makes vectors, which you keep yourself."],
  ["fine_tuning", "Models are used as they are; POST /account/my-models registers one that runs elsewhere."],
  ["fine-tunes", "Models are used as they are; POST /account/my-models registers one that runs elsewhere."],
  ["engines", "GET /v1/models lists the models."],
  ["rerank", "POST /v1/embeddings makes vectors whose distances tell what is near."],
  ["complete", `${CHAT} takes the same conversation in OpenAI's format.`],
  ["chat", `${CHAT} takes the same conversation in OpenAI's format.`],
  ["generate", `${CHAT} takes a prompt as a message of the role user.`],
  ["tags", "GET /v1/models lists the models."],
  ["embed", "POST /v1/embeddings makes vectors of texts."],
  ["realtime/calls", "GET /v1/realtime opens a conversation as a WebSocket; there is no WebRTC or SIP."],
  ["realtime/sessions", "POST /v1/realtime/client_secrets makes a short-lived credential for a browser."],
  [
    "realtime/transcription_sessions",
    "POST /v1/audio/transcriptions transcribes a recording, and GET /v1/realtime the audio of a conversation.",
  ],
  ["realtime/translations", "GET /v1/realtime opens a conversation, which can translate by its instructions."],
]);
/** Operations of Gemini's format, `models/<model>:<operation>` in lower case. */
const OF_GEMINI: ReadonlyMap<string, string> = new Map([
  ["generateanswer", "POST /v1beta/models/{model}:generateContent answers a conversation."],
  ["batchgeneratecontent", "Requests are sent one by one, as many at once as you like; an Idempotency-Key makes it safe to repeat one."],
  ["asyncbatchembedcontent", "POST /v1beta/models/{model}:batchEmbedContents embeds several texts at once."],
  ["bidigeneratecontent", "GET /v1/realtime opens a conversation as a WebSocket, in OpenAI's format."],
  ["predict", "POST /v1/images/generations makes pictures."],
  ["predictlongrunning", "POST /v1/videos makes videos."],
]);

export class UnknownRoutes {
  private templates: readonly Template[] | null = null;

  /** `routes` may grow until the first request. `mediaUrl` is null where media is served below this host's `/media`. */
  constructor(
    private readonly routes: readonly ServedRoute[],
    private readonly baseUrl: () => string,
    private readonly mediaUrl: () => string | null = () => null,
  ) {}

  /** A sentence or two for the client; empty without a hint. */
  hint(method: string, path: string): string {
    if (path.length > PATH_CHARS_MAX || !path.startsWith("/")) return "";
    const segments = path.toLowerCase().split("/").filter(Boolean);
    if (segments.length === 0 || segments.length > SEGMENTS_MAX) return "";
    const mediaUrl = segments[0] === "media" ? this.mediaUrl() : null;
    if (mediaUrl !== null) return `Files have an address of their own here: ${mediaUrl}${path.slice("/media".length)}.`;
    this.templates ??= readTemplates(this.routes);
    const below = belowBase(segments);
    if (below.length === 0) return `The routes are below it: ${CHAT}, GET /v1/models and others.`;
    const gemini = geminiHint(below);
    if (gemini) return gemini;
    const underBase = this.find(method, ["v1", ...below]);
    if (underBase) return isBase(segments, below) ? `Did you mean ${underBase}?` : this.withBase(underBase);
    const same = this.find(method, below);
    if (same) return `Did you mean ${same}?`;
    const notOffered = notOfferedOf(below);
    if (notOffered) return notOffered;
    const closest = this.closest(method, segments) ?? this.closest(method, ["v1", ...below]);
    return closest ? `Did you mean ${closest}?` : "";
  }

  /** For a known path with another method: a client without /v1 in its base URL may have meant the route of the same name. */
  methodHint(method: string, path: string): string {
    const segments = path.length > PATH_CHARS_MAX ? [] : path.split("/", SEGMENTS_MAX + 1).filter(Boolean);
    const below = belowBase(segments);
    const gemini = geminiHint(below);
    if (gemini) return gemini;
    if (isBase(segments, below)) return "";
    this.templates ??= readTemplates(this.routes);
    const meant = this.templates.find((template) => template.methods.includes(method) && fits(template, ["v1", ...below]));
    return meant ? this.withBase(show(meant, method)) : "";
  }

  private withBase(meant: string): string {
    return `Did you mean ${meant}? Set the base URL of your client to ${this.baseUrl()}/v1: it ends in /v1, and has it once.`;
  }

  /** Requires every fixed word of the template: a parameter matches anything and so proves nothing. */
  private find(method: string, segments: readonly string[]): string | null {
    const found = this.templates?.filter((template) => fits(template, segments)) ?? [];
    const [first] = found.filter(({ methods }) => methods.includes(method)).concat(found);
    return first ? show(first, method) : null;
  }

  private closest(method: string, segments: readonly string[]): string | null {
    let best: Template | null = null;
    let fewest = SLIPS_MAX;
    for (const template of this.templates ?? []) {
      const slips = slipsTo(template, segments, Math.min(fewest, template.slipsMax));
      if (slips === null || (slips === fewest && best?.methods.includes(method))) continue;
      best = template;
      fewest = slips;
    }
    return best ? show(best, method) : null;
  }
}

/** Drops the extra parts of a wrong base URL. */
function belowBase(segments: readonly string[]): readonly string[] {
  let start = 0;
  while (start < segments.length && BASES.has(segments[start] ?? "")) start += 1;
  return segments.slice(start);
}

/** The base URL is right. */
function isBase(segments: readonly string[], below: readonly string[]): boolean {
  return segments[0] === "v1" && segments.length === below.length + 1;
}

const BASES: ReadonlySet<string> = new Set(["v1", "api", "openai", "v1beta"]);

function notOfferedOf(below: readonly string[]): string | null {
  const [first = "", second = ""] = below;
  const instead = NOT_OFFERED.get(`${first}/${second}`) ?? (first === "chat" && second !== "" ? undefined : NOT_OFFERED.get(first));
  return instead ? `This gateway does not offer it. ${instead}` : null;
}

/** Null for other paths. */
function geminiHint(below: readonly string[]): string | null {
  const last = below.at(-1) ?? "";
  const instead = below[0] === "models" ? OF_GEMINI.get(last.slice(last.lastIndexOf(":") + 1).toLowerCase()) : undefined;
  return instead && last.includes(":") ? `This gateway does not offer it. ${instead}` : null;
}

/** Those of fewer parameters first, as their words say more. */
function readTemplates(routes: readonly ServedRoute[]): Template[] {
  const parametersOf = ({ segments }: Template) => segments.filter(isParameter).length;
  return routes.map(readTemplate).sort((one, other) => parametersOf(one) - parametersOf(other));
}

function readTemplate({ path, methods }: ServedRoute): Template {
  const segments = path.split("/").filter(Boolean);
  const letters = segments.filter((each) => !isParameter(each) && !takesRest(each)).join("").length;
  return {
    shown: toTemplate(path),
    segments,
    methods: Object.keys(methods).filter((method) => method !== "HEAD"),
    slipsMax: Math.min(SLIPS_MAX, Math.floor(letters / LETTERS_PER_SLIP)),
  };
}

function show({ shown, methods }: Template, method: string): string {
  return `${methods.includes(method) ? method : (methods[0] ?? "GET")} ${shown}`;
}

function isParameter(segment: string): boolean {
  return segment.startsWith(":");
}

function takesRest(segment: string): boolean {
  return segment.startsWith("*");
}

function fits({ segments: own }: Template, segments: readonly string[]): boolean {
  return own.length === segments.length && own.every((each, at) => each === segments[at] || isParameter(each));
}

/** The number of wrong letters; null beyond `most`. */
function slipsTo({ segments: own }: Template, segments: readonly string[], most: number): number | null {
  if (takesRest(own.at(-1) ?? "") ? segments.length < own.length : segments.length !== own.length) return null;
  let slips = 0;
  for (let at = 0; at < own.length && slips <= most; at += 1) {
    const each = own[at] ?? "";
    if (!takesRest(each) && !isParameter(each)) slips += distance(each, segments[at] ?? "");
  }
  return slips <= most ? slips : null;
}
