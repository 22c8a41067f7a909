/**
 * Responses, OpenAI's newer chat format: a complete response as a mutation, a streamed one as a subscription
 * (docs/spec/chat.md#responses).
 */

import { outputTextOf, type ResponseObject, type ResponseStatus as Status } from "../../formats/openai-responses/answer.js";
import type { ResponseEvent } from "../../formats/openai-responses/stream.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { type ResponseStream, type ResponseStreamBatch, responseInput } from "../../services/generation/chat/responses.js";
import type { Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder, describedValues } from "../builder.js";
import { cancellable, generationEvents } from "../cancellable.js";
import { MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText } from "../extra.js";
import { MODELS_DESCRIPTION, PRESET_DESCRIPTION, PROVIDER_DESCRIPTION, ProviderInput, wished } from "../wishes.js";
import { present, ReasoningEffort } from "./chat-input.js";
import { SafetyFeature } from "./models.js";
import { Receipt } from "./receipts.js";

const ResponseContentInput = builder.inputType("ResponseContentInput", {
  description: "The input of a response. Set exactly one field.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "Text." }),
    items: t.field({ type: ["JSON"], description: "Input items with their wire names, such as messages and tool outputs." }),
  }),
});

const ReasoningSummary = builder.enumType("ReasoningSummary", {
  description: "How much of its reasoning a model summarizes.",
  values: {
    AUTO: { value: "auto", description: "The model decides." },
    CONCISE: { value: "concise", description: "A short summary." },
    DETAILED: { value: "detailed", description: "A detailed summary." },
    NONE: { value: "none", description: "No summary." },
  } as const,
});

const ResponseReasoningInput = builder.inputType("ResponseReasoningInput", {
  description: "Reasoning options.",
  fields: (t) => ({
    effort: t.field({ type: ReasoningEffort, description: "The reasoning effort. Defaults to the model's own." }),
    summary: t.field({ type: ReasoningSummary, description: "The length of the reasoning summary. When omitted, there is no summary." }),
  }),
});

export const ResponseInput = builder.inputType("ResponseInput", {
  description: "Parameters of a response.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default text model." }),
    input: t.field({ type: ResponseContentInput, required: true, description: "The input." }),
    instructions: t.string({ description: "System instructions for the model." }),
    maxOutputTokens: t.int({ description: "The maximum length of the answer in tokens." }),
    temperature: t.float({ description: "The sampling temperature, 0 to 2." }),
    topP: t.float({ description: "Nucleus sampling: the probability mass to consider, 0 to 1." }),
    tools: t.field({
      type: ["JSON"],
      description:
        'Tools, such as `{ type: "function", name: "weather", parameters: { ... } }`, or of type `custom`. Types that the model does not support are left out, with a warning in the receipt.',
    }),
    toolChoice: t.field({ type: "JSON", description: '`"auto"`, `"none"`, `"required"`, or the function to call.' }),
    hasParallelToolCalls: t.boolean({
      description: "Whether the model may call several functions in parallel.",
      extensions: { wireName: "parallel_tool_calls" },
    }),
    text: t.field({ type: "JSON", description: 'Text options, such as `{ format: { type: "json_object" } }`.' }),
    reasoning: t.field({ type: ResponseReasoningInput, description: "Reasoning options. Defaults to the model's own." }),
    metadata: t.field({ type: "JSON", description: "Metadata that is returned with the response." }),
    isStored: t.boolean({
      description: "Stores the response, where the gateway stores responses. Defaults to false.",
      extensions: { wireName: "store" },
    }),
    previousResponse: t.id({
      description: "The ID of the stored response to continue: `input` has the new items only.",
      extensions: { wireName: "previous_response_id" },
    }),
    conversation: t.id({ description: "The ID of the conversation to continue and extend." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    models: t.stringList({ description: MODELS_DESCRIPTION }),
    preset: t.string({ description: PRESET_DESCRIPTION }),
  }),
});

/** Builds the body of POST /v1/responses, without fields that are null or absent. */
export function toBody(body: typeof ResponseInput.$inferInput): Record<string, unknown> {
  const { input, maxOutputTokens, topP, toolChoice, hasParallelToolCalls, reasoning, safe, maxCost: _, ...more } = body;
  const { isStored, previousResponse, provider: _provider, models: _models, preset: _preset, ...same } = more;
  return present({
    ...same,
    input: input.text ?? input.items,
    reasoning: reasoning && present(reasoning),
    safe: toSafeText(safe),
    max_output_tokens: maxOutputTokens,
    top_p: topP,
    tool_choice: toolChoice,
    parallel_tool_calls: hasParallelToolCalls,
    store: isStored ?? false,
    previous_response_id: previousResponse,
  });
}

export const ResponseStatus = builder.enumType("ResponseStatus", {
  description: "The status of a response.",
  values: describedValues<Status>({
    queued: "The response waits to be generated in the background.",
    in_progress: "The response is being generated.",
    completed: "The response is complete.",
    incomplete: "The response was cut off, because it reached its maximum length or the rest was withheld.",
    failed: "The response failed.",
    cancelled: "The response was cancelled, or its reader disconnected.",
  }),
});

export const Response = builder.objectRef<ResponseObject>("Response").implement({
  description: "A response of a model. `raw` contains the complete answer.",
  fields: (t) => ({
    id: t.id({ description: "The ID in the Responses format.", resolve: ({ id }) => id }),
    status: t.field({ type: ResponseStatus, description: "Whether the response is complete.", resolve: ({ status }) => status }),
    outputText: t.string({ description: "All text of the response, joined.", resolve: outputTextOf }),
    output: t.field({ type: ["JSON"], description: "The output items.", resolve: ({ output }) => [...output] }),
    raw: t.field({ type: "JSON", description: "The response in the format of POST /v1/responses.", resolve: (response) => response }),
  }),
});

interface CreatedResponse {
  readonly response: ResponseObject;
  readonly receipt: ReceiptObject;
}

const CreateResponsePayload = builder.objectRef<CreatedResponse>("CreateResponsePayload").implement({
  description: "The result of `createResponse`.",
  fields: (t) => ({
    response: t.expose("response", { type: Response, description: "The response." }),
    receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }),
  }),
});

builder.mutationField("createResponse", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateResponsePayload,
    nullable: true,
    description:
      "Creates a response in the Responses format. It is stored with `isStored`. The charge is committed before the answer is returned.",
    args: { input: t.arg({ type: ResponseInput, required: true, description: "The input and the parameters." }) },
    resolve: async (_root, { input }, ctx) => {
      const { ctx: wishing, body } = await wished(ctx, input, () => toBody(input), "responses");
      return ctx.services.responses.createNow(wishing, parsePermitted(ctx, requireCaller, responseInput, body));
    },
  }),
);

interface ResponseEventObject {
  readonly generationId: string;
  readonly event: ResponseEvent | null;
  readonly receipt: ReceiptObject | null;
}

const ResponseEventType = builder.objectRef<ResponseEventObject>("ResponseEvent").implement({
  description: "An event of a streamed response. The last one has no upstream event, only the receipt.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST ID of the usage record that will be stored." }),
    type: t.string({
      nullable: true,
      description: "The type of the event, such as `response.output_text.delta`.",
      resolve: ({ event }) => event?.type ?? null,
    }),
    event: t.field({
      type: "JSON",
      nullable: true,
      description: "The event in the format of POST /v1/responses.",
      resolve: ({ event }) => event,
    }),
    receipt: t.expose("receipt", { type: Receipt, nullable: true, description: "The receipt of the generation, in the last event." }),
  }),
});

builder.subscriptionField("response", (t) =>
  t.field({
    type: ResponseEventType,
    description: "Streams a response. Unsubscribing stops it at once, and the part generated until then is charged.",
    extensions: { endsByItself: true, isForAgents: true },
    args: { input: t.arg({ type: ResponseInput, required: true, description: "The input and the parameters." }) },
    subscribe: async (_root, { input }, ctx) => {
      const { ctx: wishing, body: stated } = await wished(ctx, input, () => toBody(input), "responses");
      const body = parsePermitted(ctx, requireCaller, responseInput, stated);
      return cancellable(wishing, (generation) => openEvents(() => ctx.services.responses.stream(generation, body), generation.signal));
    },
    resolve: (event) => event,
  }),
);

async function* openEvents(open: () => Promise<ResponseStream>, signal: AbortSignal): AsyncGenerator<ResponseEventObject> {
  const stream = await open();
  if (signal.aborted) {
    await stream.events.return?.();
    return;
  }
  const { generationId } = stream;
  yield* generationEvents<ResponseStreamBatch, ReceiptObject, ResponseEventObject>(
    { batches: stream.events, receipt: () => stream.receipt() },
    signal,
    ({ events }) => events.map((event) => ({ generationId, event, receipt: null })),
    (receipt) => ({ generationId, event: null, receipt }),
  );
}
