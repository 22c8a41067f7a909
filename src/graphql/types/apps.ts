/** Apps, as people are told of them whom they ask (docs/spec/authorization.md#app-keys). */
import type { App as AppRow } from "../../services/authorizations/apps.js";
import { builder } from "../builder.js";
import { batchedByMap } from "../loaders.js";
import { Node, nodesReadBy } from "../nodes.js";

const AppOwner = builder.objectRef<AppRow["owner"]>("AppOwner").implement({
  description: "Whose app it is.",
  fields: (t) => ({
    handle: t.exposeString("handle", { description: "Names the owner's account." }),
    githubUsername: t.exposeString("githubUsername", {
      nullable: true,
      description: "The owner's name at GitHub. Null: they have not signed in there.",
    }),
  }),
});

const ownerOf = batchedByMap((ctx, ids) => ctx.services.apps.ownersOf(ctx, ids));

export interface ShownApp extends Pick<AppRow, "id" | "name"> {
  /** Absent: it is read when it is asked for. */
  readonly owner?: AppRow["owner"];
}

export const App = builder.objectRef<ShownApp>("App").implement({
  description: "An app that has said who it is, by its app key. Its `restId` is the id of that key, which is another account's as a rule.",
  interfaces: [Node],
  extensions: nodesReadBy((ctx, ids) => ctx.services.apps.getMany(ctx, ids)),
  fields: (t) => ({
    name: t.exposeString("name", { description: "What the app is called now." }),
    owner: t.field({
      type: AppOwner,
      nullable: true,
      description: "Whose it is. Null: the app is no more.",
      resolve: ({ id, owner }, _args, ctx) => owner ?? ownerOf(ctx, id),
    }),
  }),
});

/** The app of this id; null where it is no more. */
export const appOf = batchedByMap((ctx, ids) => ctx.services.apps.getMany(ctx, ids));
