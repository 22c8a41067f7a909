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
import { Receipt } from "./chat.js";
import { MAX_COST_DESCRIPTION } from "./chat-input.js";

function inputFields(name: string) {
  return builder.inputType(name, {
    fields: (t) => ({
      model: t.string({ description: "An id or alias. Omitted: the default text model." }),
      input: t.field({ type: "JSON", required: true, description: "A text, or a list of input items by their wire names." }),
      instructions: t.string(),
      maxOutputTokens: t.int(),
      temperature: t.float({ description: "0 to 2." }),
      topP: t.float(),
      tools: t.field({
        type: ["JSON"],
        description:
          'Such as `{ type: "function", name: "weather", parameters: { ... } }`, or of type `custom`. Types that the model cannot have are left out, with a warning in the receipt.',
      }),
      toolChoice: t.field({ type: "JSON", description: '`"auto"`, `"none"`, `"required"`, or the function to call.' }),
      parallelToolCalls: t.boolean(),
      text: t.field({ type: "JSON", description: 'Such as `{ format: { type: "json_object" } }`.' }),
      reasoning: t.field({
        type: "JSON",
        description: 'Such as `{ effort: "low", summary: "auto" }`; with a summary the thoughts are told as one.',
      }),
      metadata: t.field({ type: "JSON", description: "Given back with the answer." }),
      safe: t.string({ description: "`true`, or safety features separated by commas." }),
      maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    }),
  });
}

const CreateResponseInput = inputFields("CreateResponseInput");
const ResponseSubscriptionInput = inputFields("ResponseInput");

function toBody(input: typeof CreateResponseInput.$inferInput): Record<string, unknown> {
  const { maxOutputTokens, topP, toolChoice, parallelToolCalls, maxCost: _, ...same } = input;
  const body = {
    ...same,
    max_output_tokens: maxOutputTokens,
    top_p: topP,
    tool_choice: toolChoice,
    parallel_tool_calls: parallelToolCalls,
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined && value !== null));
}

const Response = builder.objectRef<ResponseObject>("Response").implement({
  description: "What the model answered. The whole of it is in `raw`.",
  fields: (t) => ({
    id: t.id({ resolve: ({ id }) => id }),
    status: t.string({ description: "`completed` or `incomplete`.", resolve: ({ status }) => status }),
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
  fields: (t) => ({
    response: t.expose("response", { type: Response }),
    receipt: t.expose("receipt", { type: Receipt }),
  }),
});

builder.mutationField("createResponse", (t) =>
  t.field({
    type: CreateResponsePayload,
    nullable: true,
    description: "Answers an input in the Responses format, keeping nothing of it. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: CreateResponseInput, required: true }) },
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
    generationId: t.exposeID("generationId"),
    type: t.string({ nullable: true, description: "Such as `response.output_text.delta`.", resolve: ({ event }) => event?.type ?? null }),
    event: t.field({ type: "JSON", nullable: true, resolve: ({ event }) => event }),
    receipt: t.expose("receipt", { type: Receipt, nullable: true }),
  }),
});

builder.subscriptionField("response", (t) =>
  t.field({
    type: ResponseEventType,
    description: "Streams a response. Unsubscribing stops it at once; what was generated until then is charged.",
    args: { input: t.arg({ type: ResponseSubscriptionInput, required: true }) },
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
