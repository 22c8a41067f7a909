/** Responses: OpenAI's newer form of a chat, as a mutation or as the generation itself (docs/spec/chat.md#responses). */

import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import type { ResponseStream, ResponseStreamBatch } from "../../services/generation/chat/responses.js";
import type { ResponseEvent } from "../../services/generation/chat/responses-events.js";
import { responseInput } from "../../services/generation/chat/responses-input.js";
import { outputTextOf, type ResponseObject } from "../../services/generation/chat/responses-object.js";
import type { Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable, generationEvents } from "../cancellable.js";
import { MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText } from "../extra.js";
import { Receipt } from "./chat.js";
import { present, ReasoningEffort } from "./chat-input.js";
import { SafetyFeature } from "./models.js";

const ResponseContentInput = builder.inputType("ResponseContentInput", {
  description: "What a response answers: exactly one of these.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "A text." }),
    items: t.field({ type: ["JSON"], description: "Input items by their wire names, such as messages and what tools have answered." }),
  }),
});

const ReasoningSummary = builder.enumType("ReasoningSummary", {
  description: "How much of its thoughts a model tells.",
  values: {
    AUTO: { value: "auto", description: "As much as it does by itself." },
    CONCISE: { value: "concise", description: "Little." },
    DETAILED: { value: "detailed", description: "Much." },
    NONE: { value: "none", description: "Nothing." },
  } as const,
});

const ResponseReasoningInput = builder.inputType("ResponseReasoningInput", {
  description: "How a model thinks before it answers.",
  fields: (t) => ({
    effort: t.field({ type: ReasoningEffort, description: "How long. Omitted: as the model does by itself." }),
    summary: t.field({ type: ReasoningSummary, description: "With a summary the thoughts are told as one. Omitted: without." }),
  }),
});

const ResponseInput = builder.inputType("ResponseInput", {
  description: "What is to be answered in the Responses format, and how.",
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default text model." }),
    input: t.field({ type: ResponseContentInput, required: true, description: "What is to be answered." }),
    instructions: t.string({ description: "How the model shall behave." }),
    maxOutputTokens: t.int({ description: "How long the answer may be, in tokens." }),
    temperature: t.float({ description: "How freely the model chooses its words: 0 to 2." }),
    topP: t.float({ description: "The share of likely words that the model chooses from: 0 to 1." }),
    tools: t.field({
      type: ["JSON"],
      description:
        'Such as `{ type: "function", name: "weather", parameters: { ... } }`, or of type `custom`. Types that the model cannot have are left out, with a warning in the receipt.',
    }),
    toolChoice: t.field({ type: "JSON", description: '`"auto"`, `"none"`, `"required"`, or the function to call.' }),
    hasParallelToolCalls: t.boolean({
      description: "Whether the model may call several functions at once.",
      extensions: { wireName: "parallel_tool_calls" },
    }),
    text: t.field({ type: "JSON", description: 'Such as `{ format: { type: "json_object" } }`.' }),
    reasoning: t.field({ type: ResponseReasoningInput, description: "How to think. Omitted: as the model does by itself." }),
    metadata: t.field({ type: "JSON", description: "Given back with the answer." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
  }),
});

/** The body of POST /v1/responses; fields that are null or absent are left out. */
function toBody(body: typeof ResponseInput.$inferInput): Record<string, unknown> {
  const { input, maxOutputTokens, topP, toolChoice, hasParallelToolCalls, reasoning, safe, maxCost: _, ...same } = body;
  return present({
    ...same,
    input: input.text ?? input.items,
    reasoning: reasoning && present(reasoning),
    safe: toSafeText(safe),
    max_output_tokens: maxOutputTokens,
    top_p: topP,
    tool_choice: toolChoice,
    parallel_tool_calls: hasParallelToolCalls,
  });
}

const ResponseStatus = builder.enumType("ResponseStatus", {
  description: "How a response ended.",
  values: {
    IN_PROGRESS: { value: "in_progress", description: "It is being made." },
    COMPLETED: { value: "completed", description: "The model has said what it had to say." },
    INCOMPLETE: { value: "incomplete", description: "It was cut, because it was as long as it may be or its rest was withheld." },
  } as const,
});

const Response = builder.objectRef<ResponseObject>("Response").implement({
  description: "What the model answered. The whole of it is in `raw`.",
  fields: (t) => ({
    id: t.id({ description: "As the Responses format calls it.", resolve: ({ id }) => id }),
    status: t.field({ type: ResponseStatus, description: "Whether it is all that the model had to say.", resolve: ({ status }) => status }),
    outputText: t.string({ description: "Every text of the answer, joined.", resolve: outputTextOf }),
    output: t.field({ type: ["JSON"], description: "The output items.", resolve: ({ output }) => [...output] }),
    raw: t.field({ type: "JSON", description: "The answer as POST /v1/responses gives it.", resolve: (response) => response }),
  }),
});

interface CreatedResponse {
  readonly response: ResponseObject;
  readonly receipt: ReceiptObject;
}

const CreateResponsePayload = builder.objectRef<CreatedResponse>("CreateResponsePayload").implement({
  description: "A response, and what it cost.",
  fields: (t) => ({
    response: t.expose("response", { type: Response, description: "What the model answered." }),
    receipt: t.expose("receipt", { type: Receipt, description: "What it cost." }),
  }),
});

builder.mutationField("createResponse", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateResponsePayload,
    nullable: true,
    description: "Answers an input in the Responses format, keeping nothing of it. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: ResponseInput, required: true, description: "What is to be answered, and how." }) },
    resolve: (_root, { input }, ctx) => {
      const body = parsePermitted(ctx, requireCaller, responseInput, () => toBody(input));
      return ctx.services.responses.create(boundedBy(ctx, input.maxCost), body);
    },
  }),
);

interface ResponseEventObject {
  readonly generationId: string;
  readonly event: ResponseEvent | null;
  readonly receipt: ReceiptObject | null;
}

const ResponseEventType = builder.objectRef<ResponseEventObject>("ResponseEvent").implement({
  description: "One event of a streamed response; the last one has no event of its own and brings the receipt.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST id of the usage record to come." }),
    type: t.string({ nullable: true, description: "Such as `response.output_text.delta`.", resolve: ({ event }) => event?.type ?? null }),
    event: t.field({
      type: "JSON",
      nullable: true,
      description: "The event as POST /v1/responses streams it.",
      resolve: ({ event }) => event,
    }),
    receipt: t.expose("receipt", { type: Receipt, nullable: true, description: "With the last event: what it cost." }),
  }),
});

builder.subscriptionField("response", (t) =>
  t.field({
    type: ResponseEventType,
    description: "Streams a response. Unsubscribing stops it at once; what was generated until then is charged.",
    extensions: { endsByItself: true, isForAgents: true },
    args: { input: t.arg({ type: ResponseInput, required: true, description: "What is to be answered, and how." }) },
    subscribe: (_root, { input }, ctx) => {
      const body = parsePermitted(ctx, requireCaller, responseInput, () => toBody(input));
      return cancellable(boundedBy(ctx, input.maxCost), (generation) =>
        openEvents(ctx.services.responses.stream(generation, body), generation.signal),
      );
    },
    resolve: (event) => event,
  }),
);

function openEvents(stream: ResponseStream, signal: AbortSignal): AsyncIterable<ResponseEventObject> {
  const { generationId } = stream;
  return generationEvents<ResponseStreamBatch, ReceiptObject, ResponseEventObject>(
    { batches: stream.events, receipt: () => stream.receipt() },
    signal,
    ({ events }) => events.map((event) => ({ generationId, event, receipt: null })),
    (receipt) => ({ generationId, event: null, receipt }),
  );
}
