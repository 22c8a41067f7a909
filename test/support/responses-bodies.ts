/** Bodies of OpenAI's Responses format, for tests of upstreams that speak it. */
import { type Reply, sse } from "./upstream-replies.js";

type Loose = Readonly<Record<string, unknown>>;

export interface WireResponseUsage {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  readonly reasoning?: number;
}

export function responseUsage({ input, output, cached = 0, reasoning = 0 }: WireResponseUsage): Loose {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

export function textItem(text: string): Loose {
  return {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  };
}

export function callItem(callId: string, name: string, given: string): Loose {
  return { type: "function_call", id: `fc_${callId}`, call_id: callId, name, arguments: given, status: "completed" };
}

/** A `response` object. */
export function responseObject(output: readonly Loose[], more: Loose = {}): Loose {
  return {
    id: "resp_fake",
    object: "response",
    created_at: 1_700_000_000,
    status: "completed",
    error: null,
    incomplete_details: null,
    model: "gpt-mock",
    output,
    usage: responseUsage({ input: 10, output: 4 }),
    ...more,
  };
}

/** The events of a response as OpenAI streams them: created, each item as it grows and when it is done, and the whole at the end. */
export function responseEvents(response: Loose): Loose[] {
  const output = response.output as readonly Loose[];
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const events = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.flatMap(itemEvents),
    { type: `response.${response.status}`, response },
  ];
  return events.map((event, number) => ({ ...event, sequence_number: number }));
}

/** A streamed response, which ends without `[DONE]`. */
export function responseStream(response: Loose): Reply {
  const events = responseEvents(response);
  return sse(
    events.map((event) => ({ do: "event", data: JSON.stringify(event), event: String(event.type) })),
    { done: false },
  );
}

function itemEvents(item: Loose, place: number): Loose[] {
  const at = { item_id: item.id, output_index: place };
  const added = { type: "response.output_item.added", output_index: place, item: emptied(item) };
  const done = { type: "response.output_item.done", output_index: place, item };
  if (item.type === "function_call") {
    const pieces = halves(String(item.arguments)).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta }));
    return [added, ...pieces, { type: "response.function_call_arguments.done", ...at, arguments: item.arguments }, done];
  }
  if (item.type === "custom_tool_call") {
    const pieces = halves(String(item.input)).map((delta) => ({ type: "response.custom_tool_call_input.delta", ...at, delta }));
    return [added, ...pieces, { type: "response.custom_tool_call_input.done", ...at, input: item.input }, done];
  }
  const parts = (item.content ?? item.summary) as readonly Loose[];
  const grown = parts.flatMap((part, index) => {
    const text = String(part.text ?? part.refusal);
    const name = `response.${part.type === "summary_text" ? "reasoning_summary_text" : part.type}`;
    const place = { ...at, [part.type === "summary_text" ? "summary_index" : "content_index"]: index };
    const opening = part.type === "summary_text" ? "response.reasoning_summary_part.added" : "response.content_part.added";
    return [
      { type: opening, ...place, part: {} },
      ...halves(text).map((delta) => ({ type: `${name}.delta`, ...place, delta })),
      { type: `${name}.done`, ...place, text },
    ];
  });
  return [added, ...grown, done];
}

function emptied(item: Loose): Loose {
  const emptyField = item.type === "function_call" ? { arguments: "" } : item.type === "custom_tool_call" ? { input: "" } : { content: [] };
  return { ...item, ...emptyField, status: "in_progress" };
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== "");
}
