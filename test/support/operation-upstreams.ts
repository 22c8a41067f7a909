/**
 * Upstreams for the table of operations: a model of each kind with a price, what its upstream answers, and every step at which that
 * upstream can fail. All of it over sockets: nothing of the gateway is replaced.
 */
import { countTextTokens } from "../../src/lib/tokenizer.js";
import { createTestApp, type TestApp, type TestAppOptions } from "./app.js";
import { type FakeRealtime, type FakeRealtimeSession, startFakeRealtime } from "./fake-realtime.js";
import { createFakeVideos, readClip } from "./fake-videos.js";
import { chatChunks, chatCompletion, wireUsage } from "./openai-bodies.js";
import { KINDS, type Kind, type Operation, PROMPT } from "./operations.js";
import { imagesObject, picture } from "./pictures.js";
import { recording } from "./recordings.js";
import { bytes, closeSocket, errorReply, handler, json, type Reply, raw, type StreamStep, sse } from "./upstream-replies.js";

/** A model of the kind, at a price. */
export function modelOf(kind: Kind): string {
  if (kind === "realtime") return "live/realtime";
  if (kind === "text") return "acme/chat";
  return kind === "moderation" ? "acme/priced-moderation" : `acme/${kind}`;
}
/** The same at an upstream without a server. */
export const deadModelOf = (kind: Kind): string => `dead/${kind}`;

/** What the good answer costs, in nanocredits. */
export const COST_OF: Readonly<Record<Kind, bigint>> = {
  // 10 x 1,000 + 4 x 2,000
  text: 18_000n,
  image: 40_000_000n,
  // A second.
  video: 100_000_000n,
  speech: BigInt(PROMPT.length) * 15_000n,
  music: 10_000_000n,
  transcription: 100_000n,
  embedding: 20n,
  // A search.
  rerank: 2_000_000n,
  // A prompt at 1,000 a token.
  moderation: BigInt(countTextTokens(PROMPT)) * 1_000n,
  // 10 x 1,000 + 5 x 2,000
  realtime: 20_000n,
};

const PRICES = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
/** What a model of the kind says of its price. */
const PRICED: Readonly<Record<Kind, object>> = {
  text: { prices: PRICES },
  image: { prices: { completionImagePrice: "0.04" }, variations: true },
  video: { prices: { completionVideoPrice: "0.1" }, pricedFields: { size: { "*": {} } } },
  speech: { prices: { completionAudioPrice: "0.000015" } },
  music: { prices: { completionAudioPrice: "0.01" } },
  transcription: { prices: { promptAudioPrice: "0.0001" } },
  embedding: { prices: { promptTextPrice: "0.00000002" } },
  rerank: { prices: { completionTextPrice: "0.002" } },
  moderation: { prices: { promptTextPrice: "0.000001" } },
  realtime: { prices: PRICES },
};
const REALTIME_USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };

/** What a realtime upstream does with a session. */
export type Play = (far: FakeRealtimeSession) => Promise<void> | void;

export interface OperationsApp extends TestApp {
  readonly realtime: FakeRealtime;
  /** Sessions are played so from now on. */
  play(session: Play): void;
}

export async function createOperationsApp(config: TestAppOptions["config"] = {}): Promise<OperationsApp> {
  const realtime = await startFakeRealtime();
  const model = (id: string, kind: Kind) => ({
    ...{ id, modality: kind, upstream: id.split("/")[0], upstreamModel: `upstream-${kind}`, title: id },
    ...PRICED[kind],
  });
  const app = await createTestApp({
    config,
    upstreams: [
      { id: "live", wireFormat: "openai", baseUrl: realtime.baseUrl, apiKey: "live-secret-key" },
      { id: "dead", wireFormat: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "none" },
    ],
    models: [
      model("live/realtime", "realtime"),
      model("acme/priced-moderation", "moderation"),
      ...KINDS.map((kind) => model(deadModelOf(kind), kind)),
    ],
  });
  let played: Play = playWell;
  const playAll = async () => {
    for (;;) {
      const far = await realtime.nextSession();
      await played(far);
    }
  };
  void playAll();
  return {
    ...app,
    realtime,
    play: (session) => {
      played = session;
    },
    close: async () => {
      await app.close();
      await realtime.close();
    },
  };
}

const clip = await readClip(1);
const painted = await picture();

/** What the upstream of an operation answers when all is well; of a session see `playWell`. */
export function goodReply({ kind, delivery }: Pick<Operation, "kind" | "delivery">, named: object = {}): Reply {
  const sound = () => raw(recording(1), { headers: { "content-type": "audio/wav" } });
  const usage = wireUsage(10, 4);
  switch (kind) {
    case "text":
      if (delivery === "stream") return sse(goodChunks().map((chunk) => ({ ...chunk, ...named })));
      return json({ ...chatCompletion({ content: "Hello.", usage }), ...named });
    case "image":
      return json({ ...imagesObject([painted]), ...named });
    case "video":
      return createFakeVideos({ clip, pollAfterMs: 1 }).reply;
    case "speech":
    case "music":
      return sound();
    case "transcription":
      return json({ text: "Hello.", ...named });
    case "embedding":
      return json({ ...embeddings(), ...named });
    case "rerank":
      return json({ results: [{ index: 0, relevance_score: 0.5 }], meta: { billed_units: { search_units: 1 } }, ...named });
    case "moderation":
      return json({ id: "modr-1", results: [{ flagged: false, categories: { hate: false }, category_scores: { hate: 0.1 } }], ...named });
    case "realtime":
      throw new Error("A session is played.");
  }
}

const goodChunks = () => chatChunks(["Hello", " world"], { usage: wireUsage(10, 4) });
const embeddings = () => ({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [1, 2] }],
  usage: { prompt_tokens: 1, total_tokens: 1 },
});

export const playWell: Play = async (far) => {
  far.send({ type: "session.created", session: { type: "realtime" } });
  await far.next("response.create");
  far.sendDone(REALTIME_USAGE);
};

/** Has the upstreams answer the operation so until it is said otherwise. */
export function answerWell(app: OperationsApp, operation: Pick<Operation, "kind" | "delivery">): void {
  if (operation.kind === "realtime") app.play(playWell);
  else app.upstream.replyAlways(goodReply(operation));
}

/** One way in which the upstream of an operation fails. */
export interface Phase {
  readonly name: string;
  /** The operation's own unless stated. */
  readonly model?: string;
  /** What the caller had been given by then is charged for; otherwise nothing is. */
  readonly isCharged: boolean;
  /** It is an answer all the same. */
  readonly isAnswered: boolean;
  arrange(app: OperationsApp): void;
}

type Outcome = Pick<Phase, "isCharged" | "isAnswered">;
const FREE: Outcome = { isCharged: false, isAnswered: false };
const CUT: Outcome = { isCharged: true, isAnswered: false };
const ANSWERED: Outcome = { isCharged: true, isAnswered: true };

export function phasesOf(operation: Operation): readonly Phase[] {
  const { kind, delivery } = operation;
  const dead: Phase = { name: "nobody can connect to it", model: deadModelOf(kind), ...FREE, arrange: () => undefined };
  if (kind === "realtime") return [dead, ...sessionPhases()];
  const replied = (name: string, outcome: Outcome, reply: Reply): Phase => ({
    ...{ name, ...outcome },
    arrange: ({ upstream }) => upstream.replyAlways(reply),
  });
  const early = [
    dead,
    replied("closes before its headers", FREE, closeSocket()),
    replied("resets before its headers", FREE, closeSocket({ reset: true })),
    replied("answers 500", FREE, errorReply(500)),
    replied("answers 503", FREE, errorReply(503)),
    replied("answers 429", FREE, errorReply(429)),
  ];
  if (kind === "video") return [...early, ...videoPhases().map(([name, reply]) => replied(name, FREE, reply))];
  if (kind === "text" && delivery === "stream") return [...early, ...streamPhases(replied)];
  return [...early, ...bodyPhases(operation, replied), ...usagePhases(operation, replied)];
}

type Replied = (name: string, outcome: Outcome, reply: Reply) => Phase;

/** A body that ends early. Of a sound that is passed on as it comes nothing is charged either: half of it is worth nothing. */
function bodyPhases(operation: Operation, replied: Replied): Phase[] {
  const reply = goodReply(operation);
  if (reply.kind !== "body") throw new Error(`${operation.name} is not answered by a body.`);
  const { body, headers } = reply;
  const type = { "content-type": headers["content-type"] ?? "" };
  const sized = { ...type, "content-length": String(body.length) };
  const cutAfter = (count: number, head: Record<string, string>) =>
    sse(count === 0 ? [] : [bytes(body.subarray(0, count))], { headers: head, end: "cut" });
  const phases = [
    replied("is cut after its headers", FREE, cutAfter(0, sized)),
    replied("is cut after its first byte", FREE, cutAfter(1, sized)),
    replied("is cut in the middle", FREE, cutAfter(body.length >> 1, sized)),
    replied("is cut before its last byte", FREE, cutAfter(body.length - 1, sized)),
    replied("is cut at its end, which it has not told", FREE, cutAfter(body.length, type)),
    replied("answers nothing", FREE, raw("", { headers: type })),
  ];
  if (type["content-type"] !== "application/json") return phases;
  return [
    ...phases,
    replied("stops in the middle", FREE, raw(body.subarray(0, body.length >> 1), { headers: type })),
    replied("answers an error in its body", FREE, json({ error: { message: "no" } })),
  ];
}

/** Implausible usage: the answer is good, and counted here. */
function usagePhases({ kind }: Operation, replied: Replied): Phase[] {
  if (kind !== "text" && kind !== "embedding") return [];
  const body = kind === "text" ? chatCompletion({ content: "Hello." }) : embeddings();
  return BROKEN_USAGE.map(([name, usage]) => replied(`reports usage that is ${name}`, ANSWERED, json({ ...body, usage })));
}

const BROKEN_USAGE: readonly (readonly [string, unknown])[] = [
  ["negative", { prompt_tokens: -5, completion_tokens: -4, total_tokens: -9 }],
  ["beyond every number", { prompt_tokens: 1e300, completion_tokens: 1e300, total_tokens: 1e300 }],
  ["text", "many"],
  ["nothing", null],
];

/** A stream that ends after each of its events: with its connection, or as if that were its end. */
function streamPhases(replied: Replied): Phase[] {
  const chunks = goodChunks();
  // The role says nothing; after the finish reason the answer is whole.
  const outcomeAfter = (count: number) => (count < 2 ? FREE : CUT);
  const endedAfter = (count: number) => (count < 2 ? FREE : count < 4 ? CUT : ANSWERED);
  const counts = Array.from({ length: chunks.length + 1 }, (_, count) => count);
  const firstEvent = (sse(chunks.slice(0, 2)) as Extract<Reply, { kind: "stream" }>).steps.slice(0, 2);
  const halfAnEvent: StreamStep = bytes(`data: ${JSON.stringify(chunks[2]).slice(0, 20)}`);
  return [
    ...counts.map((count) => replied(`is cut after ${count} events`, outcomeAfter(count), sse(chunks.slice(0, count), { end: "cut" }))),
    ...counts.map((count) => replied(`stops after ${count} events`, endedAfter(count), sse(chunks.slice(0, count), { done: false }))),
    replied("is cut within an event", CUT, sse([...firstEvent, halfAnEvent], { end: "cut" })),
    replied("sends what nobody can read", CUT, sse([...firstEvent, bytes("data: {\n\n")])),
    replied("sends an error", CUT, sse([...firstEvent, { error: { message: "out of memory" } }], { done: false })),
    ...BROKEN_USAGE.map(([name, usage]) =>
      replied(`reports usage at its end that is ${name}`, ANSWERED, sse([...chunks.slice(0, -1), { ...chunks.at(-1), usage }])),
    ),
  ];
}

/** The job of an upstream: created, looked at, fetched. */
function videoPhases(): (readonly [string, Reply])[] {
  const failingAt = (path: RegExp, failure: Reply): Reply => {
    const { reply } = createFakeVideos({ clip, pollAfterMs: 1 });
    return handler((request, response) => {
      const chosen = path.test(`${request.method} ${request.path}`) ? failure : reply;
      return play(chosen, request, response);
    });
  };
  const create = /^POST /;
  const look = /^GET .*\/videos\/[^/]+$/;
  const content = /\/content$/;
  const cut = (head: Record<string, string>, count: number) =>
    handler((_request, response) => {
      response.writeHead(200, head);
      response.write(clip.subarray(0, count), () => response.destroy());
    });
  const sized = { "content-type": "video/mp4", "content-length": String(clip.length) };
  return [
    ["answers no job", failingAt(create, notJson())],
    ["tells nothing of the job", failingAt(look, notJson())],
    ["does not know the job any more", failingAt(look, refusal(404))],
    ["says that the job has failed", createFakeVideos({ clip, pollAfterMs: 1, error: { code: "oops", message: "no" } }).reply],
    ["does not give the clip", failingAt(content, refusal(500))],
    ["is cut in the middle of the clip", failingAt(content, cut(sized, clip.length >> 1))],
    ["is cut before the clip's last byte", failingAt(content, cut(sized, clip.length - 1))],
    ["gives no clip", failingAt(content, refusal(200))],
  ];
}

const notJson = () => handler((_request, response) => void response.writeHead(200, { "content-type": "application/json" }).end("[]"));
const refusal = (status: number) =>
  handler((_request, response) => void response.writeHead(status, { "content-type": "application/json" }).end("{}"));

function play(reply: Reply, ...[request, response]: Parameters<Extract<Reply, { kind: "handler" }>["handle"]>): void | Promise<void> {
  if (reply.kind !== "handler") throw new Error("Only handlers are played by hand.");
  return reply.handle(request, response);
}

function sessionPhases(): Phase[] {
  const created = { type: "session.created", session: { type: "realtime" } };
  const played = (name: string, outcome: Outcome, session: Play): Phase => ({ name, ...outcome, arrange: (app) => app.play(session) });
  const refused = (status: number): Phase => ({
    ...{ name: `refuses the upgrade with ${status}`, ...FREE },
    arrange: ({ realtime }) => realtime.refuseWith({ status, body: "{}" }),
  });
  return [
    refused(500),
    refused(503),
    played("is cut before it has said anything", FREE, (far) => far.socket.terminate()),
    played("is cut when the session is open", FREE, (far) => {
      far.send(created);
      far.socket.terminate();
    }),
    played("is cut when an answer is asked for", FREE, async (far) => {
      far.send(created);
      await far.next("response.create");
      far.socket.terminate();
    }),
  ];
}
