/** What an app asks for and what a person grants it, in either flow (docs/spec/authorization.md#grants). */
import { formatNanocredits } from "../../lib/money.js";
import type { GrantTerms as Terms } from "../../services/api-keys/grant-terms.js";
import type { App } from "../../services/authorizations/apps.js";
import { builder } from "../builder.js";
import { AccountPermissionEnum } from "./api-keys.js";

const AppOwner = builder.objectRef<App["owner"]>("AppOwner").implement({
  description: "Whose app it is.",
  fields: (t) => ({
    handle: t.exposeString("handle"),
    githubUsername: t.exposeString("githubUsername", { nullable: true }),
  }),
});

export const RequestingApp = builder.objectRef<App>("RequestingApp").implement({
  description: "An app that has said who it is, by its app key.",
  fields: (t) => ({
    appKeyId: t.exposeID("appKeyId"),
    name: t.exposeString("name"),
    owner: t.expose("owner", { type: AppOwner }),
  }),
});

export const GrantTerms = builder.objectRef<Terms>("GrantTerms").implement({
  description: "What a key may do that is granted to an app.",
  fields: (t) => ({
    models: t.field({
      type: ["String"],
      nullable: true,
      description: "Canonical ids. Null: every model, those to come included.",
      resolve: ({ models }) => models && [...models],
    }),
    creditBudget: t.field({ type: "Credits", resolve: ({ creditBudget }) => formatNanocredits(creditBudget) }),
    expiresInDays: t.exposeInt("expiresInDays", { description: "Counted from when the app fetches its key." }),
    permissions: t.field({ type: [AccountPermissionEnum], resolve: ({ permissions }) => [...permissions] }),
  }),
});
