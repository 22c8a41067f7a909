/**
 * One run of a prompt agent (docs/spec/agents.md#prompt-agents).
 *
 * 1. Its tools are listed; a server that is not configured ends the run before the first step.
 * 2. The model gets the agent's system prompt before the caller's messages, and its answer is passed on.
 * 3. Tool calls of a step run concurrently, and their results go to the model in the next step.
 * 4. In the last step, and after the last allowed tool call, the model may call no tool and has to answer in words.
 */

import type { RequestContext } from "../../context.js";
import { serviceUnavailable } from "../../errors.js";
import type { ChatBody, ChatDelta } from "../../formats/openai-chat/schema.js";
import { append } from "../../lib/collections.js";
import type { Model } from "../catalog/model.js";
import type { ChatCompletionInput } from "../generation/chat/plan.js";
import type { AgentTools } from "./agent-tools.js";
import { AGENT_MODEL_STEPS_MAX, AGENT_TOOL_CALLS_MAX } from "./limits.js";
import type { RunStep, StepAnswer, ToolCall } from "./model-steps.js";
import { failedResult, type ShownResult } from "./tool-results.js";

type Message = ChatCompletionInput["messages"][number];

export interface PromptRun {
  readonly ctx: RequestContext;
  readonly runStep: RunStep;
  readonly base: Model;
  readonly systemPrompt: string;
  readonly tools: AgentTools;
  readonly body: ChatBody;
}

export interface RunEnd {
  readonly finishReason: string;
}

const OWN_FIELDS = new Set([
  ...["model", "messages", "stream", "stream_options", "safe", "n"],
  ...["tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"],
]);
const BETWEEN_STEPS = "\n\n";
const NOTHING: StepAnswer = { text: "", toolCalls: [], finishReason: null };

/** Yields the answer's deltas. Rejects with the AppErrors of its generations. */
export async function* runPromptAgent(run: PromptRun): AsyncGenerator<readonly ChatDelta[], RunEnd> {
  const { ctx, runStep, base, tools, body } = run;
  const declared = tools.declared;
  const parameters = Object.fromEntries(Object.entries(body).filter(([name]) => !OWN_FIELDS.has(name)));
  const messages: Message[] = [{ role: "system", content: run.systemPrompt }, ...(body.messages as Message[])];
  const isJson = wantsJson(body);
  let callsLeft = AGENT_TOOL_CALLS_MAX;
  let hasText = false;
  for (let step = 1; ; step += 1) {
    const mayCall = declared.length > 0 && callsLeft > 0 && step < AGENT_MODEL_STEPS_MAX;
    const offer = declared.length > 0 && { tools: [...declared], ...(!mayCall && { tool_choice: "none" }) };
    const deltas = runStep(ctx, { ...parameters, model: base.id, messages: [...messages], ...offer });
    const answer: StepAnswer = yield* isJson ? lastOnly(deltas) : apart(deltas, hasText);
    hasText ||= answer.text !== "";
    const isAnswered = answer.toolCalls.length === 0 || answer.finishReason === "length";
    if (isAnswered) return { finishReason: finishReasonOf(answer) };
    // It calls tools although none are allowed, so the answer ends here.
    if (!mayCall) return { finishReason: "length" };
    messages.push(toAssistant(answer));
    append(messages, await useTools(run, answer.toolCalls, callsLeft));
    callsLeft -= Math.min(callsLeft, answer.toolCalls.length);
  }
}

/** Some upstreams report tool calls where there are none. */
function finishReasonOf({ finishReason }: StepAnswer): string {
  return finishReason === null || finishReason === "tool_calls" ? "stop" : finishReason;
}

type StepDeltas = AsyncGenerator<readonly ChatDelta[], StepAnswer>;

/** An answer in JSON must have no text before it. */
function wantsJson({ response_format: format }: ChatBody): boolean {
  return typeof format === "object" && format !== null && "type" in format && format.type !== "text";
}

/** Passes a step's deltas on only if it turns out to be the last one. */
async function* lastOnly(deltas: StepDeltas): StepDeltas {
  const said: ChatDelta[] = [];
  for (;;) {
    const { done, value } = await deltas.next();
    if (!done) append(said, value);
    else {
      if (value.toolCalls.length === 0 && said.length > 0) yield said;
      return value;
    }
  }
}

/** Separates the texts of steps by an empty line. */
async function* apart(deltas: StepDeltas, hasText: boolean): StepDeltas {
  let isDue = hasText;
  try {
    for (;;) {
      const { done, value } = await deltas.next();
      if (done) return value;
      const starts = isDue && value.some(({ content }) => content !== undefined);
      if (starts) isDue = false;
      yield starts ? [{ content: BETWEEN_STEPS }, ...value] : value;
    }
  } finally {
    await deltas.return(NOTHING);
  }
}

function toAssistant({ text, toolCalls }: StepAnswer): Message {
  return { role: "assistant", content: text === "" ? null : text, tool_calls: toolCalls.map(({ raw }) => ({ ...raw })) };
}

/** Makes one message per call; images and sounds, which a tool message may not hold, follow in another. */
async function useTools({ tools, base }: PromptRun, calls: readonly ToolCall[], callsLeft: number): Promise<readonly Message[]> {
  const { inputModalities } = base;
  const senses = { images: inputModalities.includes("image"), sounds: inputModalities.includes("audio") };
  const results = await Promise.all(
    calls.map((call, index): Promise<ShownResult> | ShownResult =>
      index < callsLeft ? tools.call(call, senses) : failedResult(`an agent calls at most ${AGENT_TOOL_CALLS_MAX} tools, and has done so.`),
    ),
  );
  const shown = results.flatMap((result, index) => mediaParts(result, `What ${calls[index]?.name} has shown:`));
  return [
    ...results.map(({ text }, index): Message => ({ role: "tool", tool_call_id: calls[index]?.id, content: text })),
    ...(shown.length > 0 ? [{ role: "user" as const, content: shown }] : []),
  ];
}

function mediaParts({ images, sounds }: ShownResult, heading: string) {
  const media = [
    ...images.map((url) => ({ type: "image_url" as const, image_url: { url } })),
    ...sounds.map((sound) => ({ type: "input_audio" as const, input_audio: sound })),
  ];
  return media.flatMap((part) => [{ type: "text" as const, text: heading }, part]);
}

/** The base model is gone, private, or an agent by now, which the caller cannot change. */
export function baseModelGone(cause: unknown): Error {
  return serviceUnavailable("The model that this agent asks cannot be called. Its owner has to name another one.", { cause });
}
