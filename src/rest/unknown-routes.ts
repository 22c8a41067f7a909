/**
 * What a client that asks for a path that is not there may have meant: a base URL without its /v1 or with two of them, a slip of the pen, or
 * a route of another API that this gateway does not have. Anybody may ask, without a key, so it is bounded: so many characters of a path
 * are looked at, and every route once.
 */
import { distance } from "fastest-levenshtein";
import { toTemplate } from "./route.js";

/** Unspecified: longer paths are not compared. */
const PATH_CHARS_MAX = 200;
const SEGMENTS_MAX = 8;
/** Of a route's letters, one in so many may be wrong; and never more than a few. */
const LETTERS_PER_SLIP = 4;
const SLIPS_MAX = 4;

export interface ServedRoute {
  /** As it is written for Express: `/keys/:id`, `/text/*prompt`. */
  readonly path: string;
  readonly methods: Readonly<Record<string, unknown>>;
}

interface Template {
  readonly shown: string;
  readonly segments: readonly string[];
  readonly methods: readonly string[];
  /** How many of its own letters may be wrong. */
  readonly slipsMax: number;
}

const CHAT = "POST /v1/chat/completions";
/** Of OpenAI's API, and of others that clients are often set to: the path below /v1, and what does here what it did. */
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([
  ["completions", `${CHAT} answers a prompt as a message of the role user.`],
  ["edits", `${CHAT} edits a text that it is given in a message.`],
  ["audio/translations", "POST /v1/audio/transcriptions writes down what is said, and POST /v1/chat/completions translates it."],
  ["images/variations", "POST /v1/images/edits makes a picture from another one."],
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
  ["messages", `${CHAT} takes the same conversation in OpenAI's format.`],
  ["complete", `${CHAT} takes the same conversation in OpenAI's format.`],
  ["chat", `${CHAT} takes the same conversation in OpenAI's format.`],
  ["generate", `${CHAT} takes a prompt as a message of the role user.`],
  ["tags", "GET /v1/models lists the models."],
  ["embed", "POST /v1/embeddings makes vectors of texts."],
]);

export class UnknownRoutes {
  private templates: readonly Template[] | null = null;

  /** `routes` may grow until the first request comes. */
  constructor(
    private readonly routes: readonly ServedRoute[],
    private readonly baseUrl: () => string,
  ) {}

  /** A sentence or two to the caller; empty when nothing comes to mind. */
  hint(method: string, path: string): string {
    if (path.length > PATH_CHARS_MAX || !path.startsWith("/")) return "";
    const segments = path.toLowerCase().split("/").filter(Boolean);
    if (segments.length === 0 || segments.length > SEGMENTS_MAX) return "";
    this.templates ??= this.routes.map(readTemplate);
    const below = belowBase(segments);
    if (below.length === 0) return `The routes are below it: ${CHAT}, GET /v1/models and others.`;
    const underBase = this.find(method, ["v1", ...below]);
    if (underBase) return isBase(segments, below) ? `Did you mean ${underBase}?` : this.withBase(underBase);
    const same = this.find(method, below);
    if (same) return `Did you mean ${same}?`;
    const notOffered = notOfferedOf(below);
    if (notOffered) return notOffered;
    const closest = this.closest(method, segments) ?? this.closest(method, ["v1", ...below]);
    return closest ? `Did you mean ${closest}?` : "";
  }

  /** Of a path that is there, but for other methods: a client whose base URL lacks the /v1 may have meant its namesake. */
  methodHint(method: string, path: string): string {
    const segments = path.length > PATH_CHARS_MAX ? [] : path.split("/", SEGMENTS_MAX + 1).filter(Boolean);
    const below = belowBase(segments);
    if (isBase(segments, below)) return "";
    this.templates ??= this.routes.map(readTemplate);
    const meant = this.templates.find((template) => template.methods.includes(method) && fits(template, ["v1", ...below]));
    return meant ? this.withBase(show(meant, method)) : "";
  }

  private withBase(meant: string): string {
    return `Did you mean ${meant}? Set the base URL of your client to ${this.baseUrl()}/v1: it ends in /v1, and has it once.`;
  }

  /** Only where each word of the template is there: whatever a route takes in as a prompt is no sign of anything. */
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

/** Without what a base URL may have too much of. */
function belowBase(segments: readonly string[]): readonly string[] {
  let start = 0;
  while (start < segments.length && BASES.has(segments[start] ?? "")) start += 1;
  return segments.slice(start);
}

/** Nothing is wrong with the base URL. */
function isBase(segments: readonly string[], below: readonly string[]): boolean {
  return segments[0] === "v1" && segments.length === below.length + 1;
}

const BASES: ReadonlySet<string> = new Set(["v1", "api", "openai", "v1beta"]);

function notOfferedOf(below: readonly string[]): string | null {
  const [first = "", second = ""] = below;
  const instead = NOT_OFFERED.get(`${first}/${second}`) ?? (first === "chat" && second !== "" ? undefined : NOT_OFFERED.get(first));
  return instead ? `This gateway does not offer it. ${instead}` : null;
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

/** The letters that are wrong; null when they are more than `most`. */
function slipsTo({ segments: own }: Template, segments: readonly string[], most: number): number | null {
  if (takesRest(own.at(-1) ?? "") ? segments.length < own.length : segments.length !== own.length) return null;
  let slips = 0;
  for (let at = 0; at < own.length && slips <= most; at += 1) {
    const each = own[at] ?? "";
    if (!takesRest(each) && !isParameter(each)) slips += distance(each, segments[at] ?? "");
  }
  return slips <= most ? slips : null;
}
