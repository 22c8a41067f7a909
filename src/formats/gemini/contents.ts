/** The contents of a Gemini request as a chat's messages. */
import { invalidInput } from "../../errors.js";
import { append } from "../../lib/collections.js";
import { isRecord } from "../../lib/json.js";
import { SignedReader } from "../signatures.js";
import { toFilePart, toInlinePart } from "./media.js";
import type { GeminiContent, GeminiPart, GenerateContentRequest } from "./request.js";
import { readSignature, toGoogleExtra, toSignedDetail } from "./signed.js";

type Message = Record<string, unknown>;

/** Fields of a part that a chat has a place for, or that only describe it. */
const READ: ReadonlySet<string> = new Set([
  ...["text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"],
  ...["videoMetadata", "mediaResolution", "partMetadata"],
]);
/** Unspecified. */
const PARTS_PER_RESULT_MAX = 1_000;
/** Fields in which clients put the text of a result. */
const RESULT_TEXTS = ["output", "result"] as const;

interface Turn {
  readonly message: Message;
  text: string;
  /** With a picture the content is a list. */
  readonly media: Message[];
  readonly thoughts: string[];
  readonly details: unknown[];
  readonly calls: Message[];
}

interface OpenCalls {
  readonly ids: string[];
  /** The number of those that have a result. */
  answered: number;
}

/** Consecutive contents of the model are one turn: chats of SDKs keep a streamed answer in its pieces. */
export class ContentsWriter {
  readonly messages: Message[] = [];
  /** Kinds of parts that a chat cannot hold. */
  readonly leftOut = new Set<string>();
  private turn: Turn | null = null;
  /** Calls by the function's name, in their order. */
  private readonly open = new Map<string, OpenCalls>();
  private readonly stated = new Set<string>();
  private calls = 0;
  private readonly signatures = new SignedReader();
  private readonly signed = new Map<string, unknown>();
  private readonly written: Message[] = [];

  addInstruction(instruction: GenerateContentRequest["systemInstruction"]): void {
    if (instruction == null) return;
    const parts = typeof instruction === "string" ? [{ text: instruction }] : (instruction.parts ?? []);
    const texts = parts.map(({ text }) => text ?? "").filter((text) => text !== "");
    if (texts.length > 0) this.messages.push({ role: "system", content: texts.join("\n\n") });
  }

  add({ role, parts }: GeminiContent, path: string): void {
    if (role === "model") {
      for (const [index, part] of (parts ?? []).entries()) this.addAnswered(part, `${path}.parts.${index}`);
    } else {
      this.endTurn();
      this.addTold(parts ?? [], path);
    }
  }

  /** Completes the messages. */
  end(): void {
    this.endTurn();
    if (this.signed.size === 0) return;
    for (const call of this.written) {
      const extra = this.signed.get(String(call.id));
      if (extra !== undefined) call.extra_content ??= extra;
    }
  }

  private addTold(parts: readonly GeminiPart[], path: string): void {
    const told: Message[] = [];
    for (const [index, part] of parts.entries()) {
      const at = `${path}.parts.${index}`;
      if (part.functionResponse != null) this.addResult(part.functionResponse, `${at}.functionResponse`);
      else if (part.functionCall != null) throw invalidInput("A functionCall belongs to a content of the model.", `${at}.functionCall`);
      else append(told, this.toShown(part, at));
    }
    if (told.length > 0) this.messages.push({ role: "user", content: simple(told) });
  }

  private addAnswered(part: GeminiPart, path: string): void {
    if (part.functionResponse != null)
      throw invalidInput("A functionResponse belongs to a content of the user.", `${path}.functionResponse`);
    this.turn ??= { message: { role: "assistant", content: null }, text: "", media: [], thoughts: [], details: [], calls: [] };
    const { turn } = this;
    const signature = part.thoughtSignature != null && part.thoughtSignature !== "" ? part.thoughtSignature : null;
    const call = part.functionCall != null ? this.toCall(part.functionCall) : null;
    if (signature !== null) this.readSignature(turn, signature, call);
    if (call !== null) turn.calls.push(call);
    else if (part.thought === true) {
      if (part.text != null && part.text !== "") turn.thoughts.push(part.text);
    } else if (part.text != null) turn.text += part.text;
    else append(turn.media, this.toShown(part, path));
  }

  private readSignature(turn: Turn, signature: string, call: Message | null): void {
    const { google, thoughts, calls } = readSignature(signature, this.signatures);
    append(turn.details, thoughts);
    for (const [id, extra] of calls) this.signed.set(id, extra);
    if (google === null) return;
    if (call === null) turn.details.push(toSignedDetail(google));
    else call.extra_content = toGoogleExtra(google);
  }

  private endTurn(): void {
    const { turn } = this;
    this.turn = null;
    if (turn === null) return;
    const { message, text, media, thoughts, details, calls } = turn;
    if (media.length > 0) message.content = [...(text === "" ? [] : [{ type: "text", text }]), ...media];
    else if (text !== "") message.content = text;
    if (thoughts.length > 0) message.reasoning_content = thoughts.join("");
    if (details.length > 0) message.reasoning_details = details;
    if (calls.length > 0) message.tool_calls = calls;
    if (Object.keys(message).length > 2 || message.content !== null) this.messages.push(message);
  }

  private toCall({ id, name, args }: NonNullable<GeminiPart["functionCall"]>): Message {
    const isStated = id != null && id !== "";
    const callId = isStated ? id : `call_${this.calls}`;
    this.calls += 1;
    if (isStated) this.stated.add(callId);
    const open = this.open.get(name);
    if (open) open.ids.push(callId);
    else this.open.set(name, { ids: [callId], answered: 0 });
    const call = { id: callId, type: "function", function: { name, arguments: JSON.stringify(args ?? {}) } };
    this.written.push(call);
    return call;
  }

  /** A result without the id of its call belongs to the first open call of its name. */
  private addResult({ id, name, response, parts }: NonNullable<GeminiPart["functionResponse"]>, path: string): void {
    const open = this.open.get(name);
    const next = open?.ids[open.answered];
    const callId = id != null && this.stated.has(id) ? id : (next ?? id ?? name);
    // Results come in the order of their calls.
    if (open && callId === next) open.answered += 1;
    if ((parts?.length ?? 0) >= PARTS_PER_RESULT_MAX)
      throw invalidInput(`A result has at most ${PARTS_PER_RESULT_MAX} parts.`, `${path}.parts`);
    const text = toResultText(response);
    const shown = (parts ?? []).flatMap((part, index) => this.toShown(part, `${path}.parts.${index}`));
    const content = shown.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text }]), ...shown];
    this.messages.push({ role: "tool", tool_call_id: callId, content });
  }

  private toShown(part: GeminiPart, path: string): Message[] {
    if (part.text != null) return part.text === "" ? [] : [{ type: "text", text: part.text }];
    if (part.inlineData != null) return [toInlinePart(part.inlineData)];
    if (part.fileData != null) return [toFilePart(part.fileData, `${path}.fileData`)];
    for (const name of Object.keys(part)) if (!READ.has(name)) this.leftOut.add(name);
    return [];
  }
}

/** Texts as one string, which every upstream takes. */
function simple(parts: readonly Message[]): unknown {
  return parts.every(({ type }) => type === "text") ? parts.map(({ text }) => text).join("\n\n") : parts;
}

/** The text of a result that holds nothing else, and the JSON of any other. An empty text is the `output` "". */
function toResultText(response: unknown): string {
  if (!isRecord(response)) return "";
  const names = Object.keys(response);
  const [only] = names;
  if (names.length === 1) {
    for (const name of RESULT_TEXTS) if (only === name && typeof response[name] === "string") return response[name];
    if (only === "error" && typeof response.error === "string") return `Error: ${response.error}`;
  }
  return JSON.stringify(response);
}
