/** Stored responses, and responses in the background (docs/spec/chat.md#stored-responses). */
import { type ResponseObject, responseIdOf } from "../../formats/openai-responses/answer.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { responseInput } from "../../services/generation/chat/responses.js";
import type { StoredResponse as Stored } from "../../services/generation/stored/stored-responses.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { batchedByMap } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { wished } from "../wishes.js";
import { Account } from "./accounts.js";
import { Response, ResponseInput, ResponseStatus, toBody } from "./responses.js";

const LIST = "storedResponses";
const WHO =
  "A key reads the responses that it created. A secret key with the permission USAGE that no app was granted reads all responses of the account.";

const answerOf = batchedByMap<ResponseObject>((ctx, uuids) => ctx.services.storedResponses.answers(ctx, uuids));

const StoredResponse = builder.objectRef<Stored>("StoredResponse").implement({
  description: "A response that the gateway stores, so that it can be retrieved and continued.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.storedResponses.getMany(ctx, ids))),
  fields: (t) => ({
    status: t.expose("status", { type: ResponseStatus, description: "Whether the response is complete." }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model." }),
    isBackground: t.exposeBoolean("isBackground", { description: "Whether it was created in the background." }),
    previousResponseId: t.exposeID("previousResponseId", { nullable: true, description: "The REST ID of the response that it continues." }),
    conversationId: t.exposeID("conversationId", { nullable: true, description: "The REST ID of its conversation." }),
    sizeBytes: t.exposeInt("sizeBytes", { description: "The bytes that count in the storage quota of the account." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was stored." }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true, description: "When it was finished. Null while it runs." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When it is deleted." }),
    response: t.field({
      type: Response,
      nullable: true,
      description: "The response itself. Null when it was deleted meanwhile.",
      resolve: ({ uuid }, _args, ctx) => answerOf(ctx, uuid),
    }),
  }),
});

builder.queryField("storedResponse", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: StoredResponse,
    nullable: true,
    description: `A stored response. ${WHO}`,
    args: { id: t.arg.id({ required: true, description: "The ID of the response." }) },
    resolve: (_root, { id }, ctx) => ctx.services.storedResponses.getStored(ctx, readId(id, "StoredResponse", "id")),
  }),
);

builder.prismaObjectField(Account, "storedResponses", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: StoredResponse, name: "StoredResponseConnection", description: "A page of stored responses." },
      { name: "StoredResponseEdge", description: "A stored response and its cursor." },
    ),
    nullable: true,
    description: "Stored responses of the account, newest first. Needs a secret key with the permission USAGE that no app was granted.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page = await ctx.services.storedResponses.list(ctx, toPageRequest(args, LIST));
      return toConnection(page, LIST, ({ createdAt, uuid }) => ({ timestamp: createdAt, id: uuid }));
    },
  }),
);

interface Payload {
  readonly storedResponse: Stored;
}

function payload(name: string, description: string) {
  return builder.objectRef<Payload>(name).implement({
    description,
    fields: (t) => ({ storedResponse: t.expose("storedResponse", { type: StoredResponse, description: "The response." }) }),
  });
}

builder.mutationField("startResponse", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: payload("StartResponsePayload", "The result of `startResponse`."),
    nullable: true,
    description:
      "Starts a response in the background, where the gateway stores responses. Read `storedResponse` until it is finished. It is charged as `createResponse`.",
    args: { input: t.arg({ type: ResponseInput, required: true, description: "The input and the parameters." }) },
    resolve: async (_root, { input }, ctx) => {
      const { ctx: wishing, body } = await wished(ctx, input, () => ({ ...toBody(input), store: true }), "responses");
      const { generationId } = await ctx.services.responses.start(wishing, parsePermitted(ctx, requireCaller, responseInput, body));
      return { storedResponse: await ctx.services.storedResponses.getStored(ctx, responseIdOf(generationId)) };
    },
  }),
);

builder.mutationField("cancelStoredResponse", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: payload("CancelStoredResponsePayload", "The result of `cancelStoredResponse`."),
    nullable: true,
    description: `Cancels a response in the background. The part generated until then is charged. A finished response does not change. ${WHO}`,
    args: {
      input: t.arg({
        type: builder.inputType("CancelStoredResponseInput", {
          description: "Parameters of `cancelStoredResponse`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the response." }) }),
        }),
        required: true,
        description: "The response to cancel.",
      }),
    },
    resolve: async (_root, { input }, ctx) => {
      const id = readId(input.id, "StoredResponse", "id");
      await ctx.services.storedResponses.cancel(ctx, id);
      return { storedResponse: await ctx.services.storedResponses.getStored(ctx, id) };
    },
  }),
);

const DeleteStoredResponsePayload = builder.objectRef<{ readonly id: string }>("DeleteStoredResponsePayload").implement({
  description: "The result of `deleteStoredResponse`.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The REST ID of the deleted response." }) }),
});

builder.mutationField("deleteStoredResponse", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: DeleteStoredResponsePayload,
    nullable: true,
    description: `Deletes a stored response. One that runs in the background is cancelled. ${WHO}`,
    args: {
      input: t.arg({
        type: builder.inputType("DeleteStoredResponseInput", {
          description: "Parameters of `deleteStoredResponse`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the response." }) }),
        }),
        required: true,
        description: "The response to delete.",
      }),
    },
    resolve: (_root, { input }, ctx) => ctx.services.storedResponses.delete(ctx, readId(input.id, "StoredResponse", "id")),
  }),
);
