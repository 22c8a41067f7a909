/** The account of a key in the format of OpenID Connect (docs/spec/authorization.md#user-info). */
import type { UserInfoClaims } from "../../services/accounts/profiles.js";
import { builder } from "../builder.js";

const UserInfo = builder.objectRef<UserInfoClaims>("UserInfo").implement({
  description: "The account of a key, with the claims of OpenID Connect.",
  fields: (t) => ({
    sub: t.exposeString("sub", { description: "The ID of the account, the same for every app." }),
    preferredUsername: t.exposeString("preferredUsername", { description: "The handle of the account." }),
    picture: t.exposeString("picture", { nullable: true, description: "The URL of the account's picture." }),
    name: t.string({
      nullable: true,
      description: "The display name of the owner. Null without the permission PROFILE.",
      resolve: ({ profile }) => profile?.name ?? null,
    }),
    email: t.string({
      nullable: true,
      description: "The e-mail address of the owner. Null without the permission PROFILE.",
      resolve: ({ profile }) => profile?.email ?? null,
    }),
    emailVerified: t.boolean({
      nullable: true,
      description: "Whether the e-mail address was verified. Null without the permission PROFILE.",
      resolve: ({ profile }) => profile?.isEmailVerified ?? null,
    }),
  }),
});

builder.queryField("userInfo", (t) =>
  t.field({
    type: UserInfo,
    nullable: true,
    description: "The account of the calling key. Works with any key, publishable ones included.",
    deprecationReason: "Use `me { restId handle image name email isEmailVerified }`.",
    resolve: (_root, _args, ctx) => ctx.services.userInfo.get(ctx),
  }),
);
