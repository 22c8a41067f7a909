/** The sandbox's chat answers: text, structured text or tool calls, by the rules of docs/sandbox-models.md. */
import { randomBytes } from "node:crypto";
import { countChatTokens, countDeltaTokens } from "../../formats/openai-chat/count.js";
import type { ChatBody } from "../../formats/openai-chat/schema.js";
import { least } from "../../lib/collections.js";
import { countTextTokens } from "../../lib/tokenizer.js";
import type { Directives } from "./directives.js";
import { refuse } from "./refusal.js";
import { sampleSchema } from "./schema-sample.js";

export interface SandboxAnswer {
  readonly choices: readonly SandboxChoice[];
  /** In an OpenAI upstream's form; null when the prompt says so. */
  readonly usage: Readonly<Record<string, unknown>> | null;
}

export interface SandboxChoice {
  /** In the pieces of a stream. */
  readonly thoughts: readonly string[];
  readonly pieces: readonly string[];
  readonly toolCalls: readonly SandboxToolCall[];
  readonly finishReason: "stop" | "length" | "tool_calls";
}

export interface SandboxToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON that the tool's schema accepts. */
  readonly arguments: string;
}

const QUOTED_CHARS_MAX = 200;
const CHOICES_MAX = 128;
const TOOL_CALLS_MAX = 16;
/** Reasoning when the request has an effort and the prompt no text for it. */
const THOUGHT = "The sandbox has nothing to think about, so it recites this sentence.";
const NO_EFFORT: ReadonlySet<unknown> = new Set([undefined, null, "none", "minimal"]);
/** The seed picks one. */
const CLOSINGS = [
  "Ask again and you will read the same.",
  "Nothing was sent anywhere.",
  "See the documentation for prompts that make it slow, fail or call tools.",
  "Every integration deserves a patient counterpart.",
];

export function lastUserText(body: ChatBody): string {
  return textOf(messagesOf(body).findLast((message) => message.role === "user")?.content);
}

export function answerChat(body: ChatBody, directives: Directives): SandboxAnswer {
  const count = Number.isInteger(body.n) ? Math.min(Math.max(Number(body.n), 1), CHOICES_MAX) : 1;
  const names = toolsToCall(body, directives);
  const text = names.length > 0 ? "" : limitText(answerText(body, directives), body.stop);
  const choice = names.length > 0 ? callTools(body, names) : shorten(thoughtFor(body, directives), text, capOf(body), directives.chunks);
  const choices = Array.from({ length: count }, () => ({ ...choice, toolCalls: choice.toolCalls.map(withOwnId) }));
  return { choices, usage: directives.reportsUsage ? usageOf(body, directives, choices) : null };
}

function answerText(body: ChatBody, directives: Directives): string {
  return directives.text ?? structuredText(body) ?? plainText(body, directives.prompt);
}

function plainText(body: ChatBody, prompt: string): string {
  const last = messagesOf(body).at(-1);
  const heard = last?.role === "tool" ? `A tool answered: "${quote(textOf(last.content))}".` : `You said: "${quote(prompt)}".`;
  const closing = CLOSINGS[Math.abs(Number.isInteger(body.seed) ? Number(body.seed) : 0) % CLOSINGS.length];
  return `This is the Sluice sandbox: no language model read your prompt, fixed rules wrote this answer. ${heard} ${closing}`;
}

function structuredText(body: ChatBody): string | null {
  const format = body.response_format;
  if (!isRecord(format)) return null;
  if (format.type === "json_object") return JSON.stringify({ sandbox: true, answer: "Fixed rules wrote this object." });
  if (format.type !== "json_schema") return null;
  return JSON.stringify(sampleSchema(isRecord(format.json_schema) ? format.json_schema.schema : undefined));
}

function thoughtFor(body: ChatBody, directives: Directives): string {
  return directives.thought === "" && !NO_EFFORT.has(body.reasoning_effort) ? THOUGHT : directives.thought;
}

/** Ends the text where the first stop sequence begins. */
function limitText(text: string, stop: unknown): string {
  const sequences = (Array.isArray(stop) ? stop : [stop]).filter((sequence) => typeof sequence === "string" && sequence !== "");
  const places = sequences.map((sequence) => text.indexOf(sequence)).filter((place) => place !== -1);
  return text.slice(0, least(places));
}

function capOf(body: ChatBody): number {
  const cap = body.max_completion_tokens ?? body.max_tokens;
  return typeof cap === "number" && cap >= 1 ? cap : Number.POSITIVE_INFINITY;
}

/** Cuts a choice to a number of tokens, reasoning first, and into pieces. */
function shorten(thought: string, text: string, tokensMax: number, chunks: number | null): SandboxChoice {
  const thoughts = takeTokens(words(thought), tokensMax);
  const spent = countTextTokens(thoughts.join(""));
  const pieces = chunks === null ? words(text) : cutEvenly(text, chunks);
  const taken = takeTokens(pieces, tokensMax - spent);
  const isWhole = taken.join("").length === text.length && thoughts.join("").length === thought.length;
  return { thoughts, pieces: taken, toolCalls: [], finishReason: isWhole ? "stop" : "length" };
}

/** The leading pieces with no more than `tokensMax` tokens together; of a too long first piece, its beginning. */
function takeTokens(pieces: readonly string[], tokensMax: number): readonly string[] {
  if (tokensMax === Number.POSITIVE_INFINITY || countTextTokens(pieces.join("")) <= tokensMax) return pieces;
  const count = largest(pieces.length, (length) => countTextTokens(pieces.slice(0, length).join("")) <= tokensMax);
  if (count > 0 || pieces[0] === undefined) return pieces.slice(0, count);
  const letters = [...pieces[0]];
  const kept = largest(letters.length, (length) => countTextTokens(letters.slice(0, length).join("")) <= tokensMax);
  return kept === 0 ? [] : [letters.slice(0, kept).join("")];
}

/** The largest number from 0 to `max` for which the test holds, given that it is monotonic. */
function largest(max: number, test: (value: number) => boolean): number {
  let low = 0;
  let high = max;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (test(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

function words(text: string): readonly string[] {
  return text.match(/\s*\S+(?:\s+$)?|\s+$/g) ?? [];
}

/** Cuts into pieces of similar length, one for each character when there are fewer. */
function cutEvenly(text: string, count: number): readonly string[] {
  const letters = [...text];
  const pieces = Math.min(count, letters.length);
  const edge = (piece: number) => Math.round((piece * letters.length) / pieces);
  return Array.from({ length: pieces }, (_, piece) => letters.slice(edge(piece), edge(piece + 1)).join(""));
}

/** The tools that this answer calls; none for an answer in words. */
function toolsToCall(body: ChatBody, directives: Directives): readonly string[] {
  const choice = body.tool_choice;
  if (choice === "none") return [];
  const forced = isRecord(choice) && isRecord(choice.function) ? choice.function.name : undefined;
  if (typeof forced === "string") return [forced];
  // A tool's answer to this prompt must not lead to the same call again.
  const messages = messagesOf(body);
  const isAnswered = messages.slice(messages.findLastIndex((message) => message.role === "user") + 1).some(isToolMessage);
  const tools = isAnswered ? [] : directives.tools;
  if (choice === "required" && tools.length === 0) return [firstToolName(body)];
  if (tools.length > TOOL_CALLS_MAX) throw refuse(`The sandbox calls ${TOOL_CALLS_MAX} tools at most.`, "messages");
  return body.parallel_tool_calls === false ? tools.slice(0, 1) : tools;
}

function firstToolName(body: ChatBody): string {
  const name = functionsOf(body)[0]?.name;
  if (typeof name !== "string") throw refuse("A tool is required but none is declared.", "tool_choice");
  return name;
}

function callTools(body: ChatBody, names: readonly string[]): SandboxChoice {
  const functions = functionsOf(body);
  const toolCalls = names.map((name) => {
    const declared = functions.find((candidate) => candidate.name === name);
    if (declared === undefined) throw refuse(`No tool named "${name}" is declared.`, "tools");
    const parameters = isRecord(declared.parameters) ? declared.parameters : {};
    const value = sampleSchema({ type: "object", ...parameters });
    return { id: "", name, arguments: JSON.stringify(value) };
  });
  return { thoughts: [], pieces: [], toolCalls, finishReason: "tool_calls" };
}

function withOwnId(call: SandboxToolCall): SandboxToolCall {
  return { ...call, id: `call_${randomBytes(12).toString("hex")}` };
}

function usageOf(body: ChatBody, directives: Directives, choices: readonly SandboxChoice[]): Record<string, unknown> {
  const { tokens } = directives;
  const reasoning = choices.reduce((sum, choice) => sum + countTextTokens(choice.thoughts.join("")), 0);
  const spoken = choices.reduce((sum, choice) => sum + countDeltaTokens(toMessage({ ...choice, thoughts: [] })), 0);
  const input = tokens.in ?? countChatTokens(body.messages, body);
  const output = tokens.out ?? reasoning + spoken;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: tokens.cached ?? 0,
      cache_write_tokens: tokens.cache_write ?? 0,
      audio_tokens: tokens.audio_in ?? 0,
      image_tokens: tokens.image_in ?? 0,
    },
    completion_tokens_details: {
      reasoning_tokens: tokens.reasoning ?? reasoning,
      audio_tokens: tokens.audio_out ?? 0,
      image_tokens: tokens.image_out ?? 0,
    },
  };
}

export function toMessage(choice: SandboxChoice): Record<string, unknown> {
  const message: Record<string, unknown> = {
    role: "assistant",
    content: choice.toolCalls.length > 0 ? null : choice.pieces.join(""),
    refusal: null,
  };
  if (choice.thoughts.length > 0) message.reasoning_content = choice.thoughts.join("");
  if (choice.toolCalls.length > 0) {
    message.tool_calls = choice.toolCalls.map(({ id, name, arguments: json }) => ({
      id,
      type: "function",
      function: { name, arguments: json },
    }));
  }
  return message;
}

type Loose = Readonly<Record<string, unknown>>;

function messagesOf(body: ChatBody): readonly Loose[] {
  return Array.isArray(body.messages) ? body.messages.filter(isRecord) : [];
}

function functionsOf(body: ChatBody): readonly Loose[] {
  const tools = Array.isArray(body.tools) ? body.tools.filter(isRecord) : [];
  return tools.map((tool) => tool.function).filter(isRecord);
}

function isToolMessage(message: Loose): boolean {
  return message.role === "tool" || message.role === "function";
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter(isRecord)
    .map((part) => part.text)
    .filter((text) => typeof text === "string")
    .join("\n");
}

function quote(text: string): string {
  const letters = [...text.slice(0, 2 * QUOTED_CHARS_MAX)];
  return letters.length > QUOTED_CHARS_MAX ? `${letters.slice(0, QUOTED_CHARS_MAX).join("")}…` : text;
}

function isRecord(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
