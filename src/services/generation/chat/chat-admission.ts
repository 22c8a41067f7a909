/**
 * What a chat must pass before anything is held: limits, the outbound guard with every address that an upstream would fetch, and the
 * safety features, which read and may rewrite every text that the caller wrote in its messages.
 */
import type { RequestContext } from "../../../context.js";
import { ownValue } from "../../../lib/own-values.js";
import { isChecked, toSafeText } from "../../safety/features.js";
import { quoteMarksInJson } from "../../safety/redaction.js";
import type { Admission } from "../admission.js";
import { addressesIn, fetchesNothing } from "../named-addresses.js";
import type { ChatCompletionInput } from "./chat-input.js";
import { type ChatPlan, withMessages } from "./chat-plan.js";

type Message = ChatCompletionInput["messages"][number];
type Rewrite = (text: string) => string;

/** The plan as it may go on; null when nothing stands in its way: callers with secret keys are on the fast path. */
export function admitChat(ctx: RequestContext, plan: ChatPlan, input: ChatCompletionInput, admission: Admission): Promise<ChatPlan> | null {
  const limited = admission.limit(ctx, plan.caller, plan.model);
  const addresses = plan.candidates.every(fetchesNothing) ? [] : addressesIn(input.messages, "messages");
  const isRead = isChecked(plan.model, input.safe);
  if (!isRead && addresses.length === 0) return limited?.then(() => plan) ?? null;
  return (async () => {
    if (limited) await limited;
    if (addresses.length > 0) await admission.addresses.check(addresses, ctx.signal);
    return isRead ? screen(ctx, plan, input, admission) : plan;
  })();
}

async function screen(ctx: RequestContext, plan: ChatPlan, input: ChatCompletionInput, admission: Admission): Promise<ChatPlan> {
  const written: string[] = [];
  const note: Rewrite = (text) => {
    written.push(text);
    return text;
  };
  for (const message of input.messages) rewriteMessage(message, note);
  const { texts, safety } = await admission.check(ctx, { model: plan.model, texts: written, safe: toSafeText(input.safe) });
  if (texts.every((text, index) => text === written[index])) return { ...plan, safety };
  let next = 0;
  const replace: Rewrite = () => {
    const text = texts[next] ?? "";
    next += 1;
    return text;
  };
  const messages = input.messages.map((message) => rewriteMessage(message, replace));
  return withMessages(plan, input, messages, safety);
}

/** Fields of a message, and of a part of its content, that are text; an assistant's thoughts have two names. */
const MESSAGE_TEXTS = ["content", "refusal", "reasoning_content", "reasoning"];
const PART_TEXTS = ["text", "refusal"];

/** The message with each of its texts rewritten, always in the same order. */
function rewriteMessage(message: Message, rewrite: Rewrite): Message {
  const { content, tool_calls: calls, function_call: called } = message;
  return {
    ...rewriteFields(message, MESSAGE_TEXTS, rewrite),
    ...(Array.isArray(content) && { content: content.map((part) => rewriteFields(part, PART_TEXTS, rewrite)) }),
    ...(Array.isArray(calls) && { tool_calls: calls.map((call) => rewriteCall(call, rewrite)) }),
    // What tool calls were called before.
    ...(called !== undefined && { function_call: rewriteArguments(called, rewrite) }),
  };
}

function rewriteFields<Fields extends Readonly<Record<string, unknown>>>(
  fields: Fields,
  names: readonly string[],
  rewrite: Rewrite,
): Fields {
  const texts = names
    .map((name) => [name, ownValue(fields, name)] as const)
    .filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return { ...fields, ...Object.fromEntries(texts.map(([name, text]) => [name, rewrite(text)])) };
}

/** Of a function, or of a tool of the caller's own form, whose input is plain text. */
function rewriteCall(call: Readonly<Record<string, unknown>>, rewrite: Rewrite): Record<string, unknown> {
  const { function: called, custom } = call;
  return {
    ...call,
    ...(called !== undefined && { function: rewriteArguments(called, rewrite) }),
    ...(typeof custom === "object" && custom !== null && { custom: rewriteFields({ ...custom }, ["input"], rewrite) }),
  };
}

/** Arguments are JSON, and stay so. */
function rewriteArguments(called: unknown, rewrite: Rewrite): unknown {
  if (typeof called !== "object" || called === null || !("arguments" in called)) return called;
  const { arguments: before } = called;
  if (typeof before !== "string") return called;
  const after = rewrite(before);
  return { ...called, arguments: after === before ? before : quoteMarksInJson(before, after) };
}
