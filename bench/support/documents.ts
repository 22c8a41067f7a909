/** The documents that travel in every benchmark: one chat request, its JSON answer, and its stream. */

/** What the contenders' names of the models begin with: Sluice's canonical ids, and the upstream's own. */
export const SLUICE_PREFIX = "bench/";
export const UPSTREAM_PREFIX = "bench-";

const INPUT_TOKENS = 42;
const WORDS = ["The", " sluice", " opens", " and", " the", " water", " runs", " down", " to", " the", " mill"];
const ENVELOPE = {
  id: "chatcmpl-bench0123456789abcdef",
  created: 1_760_000_000,
  model: `${UPSTREAM_PREFIX}chat`,
  system_fingerprint: "fp_bench",
};

/** The requested kind: a chat, whole or streamed, a picture or speech of a megabyte. */
export const WORKLOADS = ["json", "sse", "image", "speech"] as const;
export type Workload = (typeof WORKLOADS)[number];

/** Of a picture or a recording, before base64. */
const MEDIA_BYTES = 1024 * 1024;
const SPOKEN = "The sluice opens, and the water runs down to the mill.";

const PATHS: Record<Workload, string> = {
  json: "/v1/chat/completions",
  sse: "/v1/chat/completions",
  image: "/v1/images/generations",
  speech: "/v1/audio/speech",
};
/** Sluice's canonical ids end like the upstream's names. */
const MODEL_SUFFIXES: Record<Workload, string> = { json: "chat", sse: "chat", image: "image", speech: "speech" };

export function pathOf(workload: Workload): string {
  return PATHS[workload];
}

/** `prefix` is `bench/` for Sluice and `bench-` for everybody else. */
export function requestBody(workload: Workload, prefix: string): string {
  const model = `${prefix}${MODEL_SUFFIXES[workload]}`;
  if (workload === "image") return JSON.stringify({ model, prompt: SPOKEN, size: "1024x1024", response_format: "b64_json" });
  if (workload === "speech") return JSON.stringify({ model, input: SPOKEN, voice: "alloy" });
  return chatRequest(model, workload === "sse");
}

/** Bytes that no text compresses and no decoder knows, with a PNG's or an MP3's beginning: the same in every process. */
export function mediaBytes(start: readonly number[]): Buffer {
  const bytes = Buffer.alloc(MEDIA_BYTES);
  let state = 1;
  for (let index = 0; index < MEDIA_BYTES; index += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes.writeUInt32LE(state, index);
  }
  bytes.set(start);
  return bytes;
}

export const PNG_START = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
export const MP3_START = [0xff, 0xfb, 0x90, 0x64];

/** The upstream's JSON answer of one picture. */
export function imageDocument(): string {
  return JSON.stringify({ created: ENVELOPE.created, data: [{ b64_json: mediaBytes(PNG_START).toString("base64") }] });
}

/** A chat request of the size that a short conversation has (about 500 bytes). */
function chatRequest(model: string, stream: boolean): string {
  return JSON.stringify({
    model,
    messages: [
      { role: "system", content: "You are a careful assistant. Answer briefly, in plain words, and say so when you do not know." },
      { role: "user", content: "How does a water mill use the fall of a stream, and what is the gate in front of the wheel called?" },
      { role: "assistant", content: "The water drops onto the wheel and turns it. The gate is the sluice." },
      { role: "user", content: "And what happens when somebody opens it?" },
    ],
    temperature: 0.7,
    max_tokens: 256,
    ...(stream ? { stream: true } : {}),
  });
}

const PROSE = (
  "The gate opens, and the water runs down to the mill. Nobody who lives beside it has counted how often: in 1843, they say, it froze. " +
  'Grain comes by boat; flour leaves by cart. "Mind the stones", says the miller, whose father said so too.\n\n'
).split(/(?<= )/);
const LONG_MESSAGE_CHARS = 10_000;

/**
 * A chat request of so many characters of new prose for each `number`: one message for an even number, a conversation
 * for an odd one.
 */
export function longChatRequest(model: string, chars: number, number: number): string {
  let state = number;
  let text = `${number}. `;
  while (text.length < chars) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += PROSE[Math.floor((state / 2 ** 32) * PROSE.length)] ?? "";
  }
  const size = number % 2 === 0 ? text.length : LONG_MESSAGE_CHARS;
  const messages: object[] = [];
  for (let start = 0; start < text.length; start += size) {
    messages.push({ role: messages.length % 2 === 0 ? "user" : "assistant", content: text.slice(start, start + size) });
  }
  return JSON.stringify({ model, messages, max_tokens: 256 });
}

/** The JSON answer of the upstream, usage with every detail that OpenAI reports. */
export function completionDocument(): string {
  const content = Array.from({ length: 40 }, (_, index) => WORDS[index % WORDS.length]).join("");
  return JSON.stringify({
    ...ENVELOPE,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content, refusal: null }, logprobs: null, finish_reason: "stop" }],
    usage: usage(40),
  });
}

export interface StreamDocument {
  /** One SSE event each: a delta of one word. */
  readonly deltas: readonly string[];
  /** What closes the stream: the finish reason, the usage chunk and `[DONE]`. */
  readonly ending: string;
}

export function streamDocument(deltaCount: number): StreamDocument {
  const deltas = Array.from({ length: deltaCount }, (_, index) => {
    const content = WORDS[index % WORDS.length];
    return event({
      choices: [{ index: 0, delta: index === 0 ? { role: "assistant", content } : { content }, logprobs: null, finish_reason: null }],
    });
  });
  const finish = event({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] });
  const last = event({ choices: [], usage: usage(deltaCount) });
  return { deltas, ending: `${finish}${last}data: [DONE]\n\n` };
}

function event(chunk: object): string {
  return `data: ${JSON.stringify({ ...ENVELOPE, object: "chat.completion.chunk", ...chunk })}\n\n`;
}

function usage(outputTokens: number): object {
  return {
    prompt_tokens: INPUT_TOKENS,
    completion_tokens: outputTokens,
    total_tokens: INPUT_TOKENS + outputTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
  };
}
