/** Signing in, and the sessions and profile of whoever is signed in. The cookie goes with the HTTP answer (docs/spec/sessions.md#sign-in). */
import { invalidInput } from "../../errors.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import type { SelectedAccount } from "../../services/accounts/accounts.js";
import { updateProfileInput } from "../../services/accounts/profiles.js";
import { parseInput } from "../../services/requests/input.js";
import type { SessionRow } from "../../services/sessions/sessions.js";
import { changePasswordInput, type SignedIn, signInInput, signUpInput } from "../../services/sessions/sign-in.js";
import { builder } from "../builder.js";
import type { BrowserAnswer, GraphQLContext } from "../context.js";
import { selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const Session = builder.objectRef<SessionRow>("Session").implement({
  description: "A browser in which the account is signed in.",
  fields: (t) => ({
    id: t.exposeID("id"),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "Later, when it is used before." }),
    userAgent: t.exposeString("userAgent", { nullable: true, description: "What the browser called itself." }),
    ipAddress: t.exposeString("ipAddress", { nullable: true, description: "Where it signed in from." }),
    isCurrent: t.exposeBoolean("isCurrent", { description: "True for the session that asks." }),
  }),
});

builder.objectField(Account, "sessions", (t) =>
  t.field({
    type: [Session],
    nullable: true,
    description: "Where the account is signed in, newest first. Only a session may see them.",
    resolve: async (_row, _args, ctx) => [...(await ctx.services.sessions.list(ctx))],
  }),
);

const SignedInPayload = builder.interfaceRef<SignedIn>("SignedIn").implement({
  description: "Whoever is signed in now. The session's cookie is set by the answer.",
  fields: (t) => ({ accountId: t.exposeID("accountId"), sessionId: t.exposeID("sessionId") }),
});
const SignUpPayload = builder.objectRef<SignedIn>("SignUpPayload").implement({ interfaces: [SignedInPayload] });
const SignInPayload = builder.objectRef<SignedIn>("SignInPayload").implement({ interfaces: [SignedInPayload] });
const ChangePasswordPayload = builder.objectRef<SignedIn>("ChangePasswordPayload").implement({ interfaces: [SignedInPayload] });

const SignUpInput = builder.inputType("SignUpInput", {
  fields: (t) => ({
    email: t.string({ required: true }),
    password: t.string({ required: true, description: "8 to 128 characters." }),
    name: t.string(),
  }),
});

const SignInInput = builder.inputType("SignInInput", {
  fields: (t) => ({ email: t.string({ required: true }), password: t.string({ required: true }) }),
});

const ChangePasswordInput = builder.inputType("ChangePasswordInput", {
  fields: (t) => ({
    currentPassword: t.string({ required: true }),
    newPassword: t.string({ required: true, description: "8 to 128 characters." }),
  }),
});

/** A repetition by alias would dodge the limit on attempts (docs/spec/graphql.md#limits). */
const ONE_SIGN_IN = { isOnePerOperation: true };

builder.mutationField("signUp", (t) =>
  t.field({
    type: SignUpPayload,
    nullable: true,
    description: "Makes an account and signs in to it. Over HTTP only, and where the gateway signs people in.",
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignUpInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      answering(ctx, (browser) => ctx.services.signIn.signUp(ctx, parseInput(signUpInput, input), browser)),
  }),
);

builder.mutationField("signIn", (t) =>
  t.field({
    type: SignInPayload,
    nullable: true,
    description:
      "Signs in with an e-mail address and a password; always into a new session. Over HTTP only, and where the gateway signs people in.",
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignInInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      answering(ctx, (browser) => ctx.services.signIn.signIn(ctx, parseInput(signInInput, input), browser)),
  }),
);

builder.mutationField("changePassword", (t) =>
  t.field({
    type: ChangePasswordPayload,
    nullable: true,
    description: "Changes the password, ends every session of the account and opens a new one. Sessions only, over HTTP only.",
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: ChangePasswordInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      answering(ctx, (browser) =>
        ctx.services.signIn.changePassword(ctx, parsePermitted(ctx, requireSession, changePasswordInput, input), browser),
      ),
  }),
);

const SignOutInput = builder.inputType("SignOutInput", {
  fields: (t) => ({ everywhere: t.boolean({ description: "In every browser. Only in this one unless stated." }) }),
});

const SignOutPayload = builder.objectRef<{ readonly ended: number }>("SignOutPayload").implement({
  fields: (t) => ({ ended: t.exposeInt("ended", { description: "How many sessions it ended." }) }),
});

builder.mutationField("signOut", (t) =>
  t.field({
    type: SignOutPayload,
    nullable: true,
    description: "Ends the session that asks. Sessions only, over HTTP only.",
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignOutInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      answering(ctx, () => ctx.services.sessions.signOut(ctx, { isEverywhere: input.everywhere ?? false })),
  }),
);

const RevokeSessionInput = builder.inputType("RevokeSessionInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

const RevokeSessionPayload = builder.objectRef<{ readonly id: string }>("RevokeSessionPayload").implement({
  fields: (t) => ({ id: t.exposeID("id") }),
});

builder.mutationField("revokeSession", (t) =>
  t.field({
    type: RevokeSessionPayload,
    nullable: true,
    description: "Ends a session of the account. Sessions only.",
    args: { input: t.arg({ type: RevokeSessionInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.sessions.revoke(ctx, input.id),
  }),
);

const RevokeOtherSessionsInput = builder.inputType("RevokeOtherSessionsInput", {
  fields: (t) => ({ clientMutationId: t.string({ description: "Answered as it was sent." }) }),
});

interface RevokedSessions {
  readonly ended: number;
  readonly clientMutationId: string | null;
}

const RevokeOtherSessionsPayload = builder.objectRef<RevokedSessions>("RevokeOtherSessionsPayload").implement({
  fields: (t) => ({
    ended: t.exposeInt("ended", { description: "How many sessions it ended." }),
    // Relay's name for it, text of the client's own and no id of ours.
    clientMutationId: t.exposeID("clientMutationId", { nullable: true }),
  }),
});

builder.mutationField("revokeOtherSessions", (t) =>
  t.field({
    type: RevokeOtherSessionsPayload,
    nullable: true,
    description: "Ends every session of the account but the one that asks. Sessions only.",
    args: { input: t.arg({ type: RevokeOtherSessionsInput, required: true }) },
    resolve: async (_root, { input }, ctx) => ({
      ended: await ctx.services.sessions.revokeOthers(ctx),
      clientMutationId: input.clientMutationId ?? null,
    }),
  }),
);

const UpdateProfileInput = builder.inputType("UpdateProfileInput", {
  description: "Only the fields that are sent change.",
  fields: (t) => ({
    name: t.string(),
    handle: t.string({ description: "1 to 39 of the letters a to z, digits and dashes; not a dash first. Nobody else may have it." }),
    image: t.string({ description: "An https URL." }),
  }),
});

const UpdateProfilePayload = builder.objectRef<{ readonly account: SelectedAccount }>("UpdateProfilePayload").implement({
  fields: (t) => ({ account: t.field({ type: Account, resolve: ({ account }) => account }) }),
});

builder.mutationField("updateProfile", (t) =>
  t.field({
    type: UpdateProfilePayload,
    nullable: true,
    description: "Changes how the account and its owner are called. Sessions only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateProfileInput, required: true }) },
    resolve: async (_root, { input }, ctx, info) => {
      await ctx.services.profiles.update(ctx, parsePermitted(ctx, requireSession, updateProfileInput, input));
      return { account: await ctx.services.accounts.own(ctx, selectionOf(ctx, info, ["account"])) };
    },
  }),
);

/** Sets what `work` answers with as cookies of the HTTP answer. Rejects with BAD_REQUEST where there is none. */
async function answering<Result extends { readonly cookies: readonly string[] }>(
  { browser }: GraphQLContext,
  work: (browser: BrowserAnswer) => Promise<Result>,
): Promise<Result> {
  if (browser === null) throw invalidInput("A WebSocket cannot set the session's cookie: send this over HTTP.");
  browser.assertSessionHost();
  const result = await work(browser);
  for (const line of result.cookies) browser.addCookie(line);
  return result;
}
