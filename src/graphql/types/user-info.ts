/** Who stands behind a key, as OpenID Connect tells it (docs/spec/authorization.md#user-info). */
import type { UserInfoClaims } from "../../services/accounts/profiles.js";
import { builder } from "../builder.js";

const UserInfo = builder.objectRef<UserInfoClaims>("UserInfo").implement({
  description: "Who stands behind a key, in the words of OpenID Connect.",
  fields: (t) => ({
    sub: t.exposeString("sub", { description: "The account's id, the same for every app." }),
    preferredUsername: t.exposeString("preferredUsername", { description: "The handle." }),
    picture: t.exposeString("picture", { nullable: true, description: "The address of the account's picture." }),
    name: t.string({
      nullable: true,
      description: "What its owner is called. Null without the permission PROFILE.",
      resolve: ({ profile }) => profile?.name ?? null,
    }),
    email: t.string({
      nullable: true,
      description: "Where its owner is reached. Null without the permission PROFILE.",
      resolve: ({ profile }) => profile?.email ?? null,
    }),
    emailVerified: t.boolean({
      nullable: true,
      description: "Whether the address is known to be its owner's. Null without the permission PROFILE.",
      resolve: ({ profile }) => profile?.isEmailVerified ?? null,
    }),
  }),
});

builder.queryField("userInfo", (t) =>
  t.field({
    type: UserInfo,
    nullable: true,
    description: "Whose key this is. Any key may ask, publishable ones included.",
    deprecationReason: "Use `me { restId handle image name email isEmailVerified }`.",
    resolve: (_root, _args, ctx) => ctx.services.userInfo.get(ctx),
  }),
);
