/** Apps as the consent page shows them (docs/spec/authorization.md#app-keys). */
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { type AppMargin, setAppMarginInput } from "../../services/authorizations/app-margins.js";
import type { App as AppRow } from "../../services/authorizations/apps.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { batchedByMap } from "../loaders.js";
import { Node, nodesReadBy } from "../nodes.js";

const AppOwner = builder.objectRef<AppRow["owner"]>("AppOwner").implement({
  description: "The owner of an app.",
  fields: (t) => ({
    handle: t.exposeString("handle", { description: "The handle of the owner's account." }),
    githubUsername: t.exposeString("githubUsername", {
      nullable: true,
      description: "The owner's GitHub user name. Null when they have not signed in with GitHub.",
    }),
  }),
});

const ownerOf = batchedByMap((ctx, ids) => ctx.services.apps.ownersOf(ctx, ids));

export interface ShownApp extends Pick<AppRow, "id" | "name"> {
  /** Absent: the owner is loaded when the field is resolved. */
  readonly owner?: AppRow["owner"];
}

export const App = builder.objectRef<ShownApp>("App").implement({
  description:
    "An app that identified itself with an app key. Its `restId` is the ID of that key, which usually belongs to another account.",
  interfaces: [Node],
  extensions: nodesReadBy((ctx, ids) => ctx.services.apps.getMany(ctx, ids)),
  fields: (t) => ({
    name: t.exposeString("name", { description: "The current name of the app." }),
    owner: t.field({
      type: AppOwner,
      nullable: true,
      description: "The owner of the app. Null when the app was deleted.",
      resolve: ({ id, owner }, _args, ctx) => owner ?? ownerOf(ctx, id),
    }),
  }),
});

const SetAppMarginInput = builder.inputType("SetAppMarginInput", {
  description: "Parameters of `setAppMargin`.",
  fields: (t) => ({
    appId: t.id({ required: true, description: "The ID of the app, or of its app key." }),
    marginPercent: t.int({ required: true, description: "Percent on top of prices, from 0 to the operator's bound." }),
  }),
});

const SetAppMarginPayload = builder.objectRef<AppMargin>("SetAppMarginPayload").implement({
  description: "The result of `setAppMargin`.",
  fields: (t) => ({
    appId: t.exposeID("appId", { description: "The REST ID of the app." }),
    marginPercent: t.exposeInt("marginPercent", { description: "Percent on top of prices." }),
  }),
});

builder.mutationField("setAppMargin", (t) =>
  t.field({
    type: SetAppMarginPayload,
    nullable: true,
    description:
      "Sets the percentage that an app of the account earns on top of prices, for keys that are granted from then on. Needs a session or a key with the permission KEYS.",
    args: { input: t.arg({ type: SetAppMarginInput, required: true, description: "The app and its margin." }) },
    resolve: (_root, { input: { appId, ...margin } }, ctx) =>
      ctx.services.appMargins.set(
        ctx,
        readId(appId, "App", "input.appId"),
        parsePermitted(ctx, requireKeyManager, setAppMarginInput, margin),
      ),
  }),
);

/** Returns the app with this ID, or null when it was deleted. */
export const appOf = batchedByMap((ctx, ids) => ctx.services.apps.getMany(ctx, ids));
