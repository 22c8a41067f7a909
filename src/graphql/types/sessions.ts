/**
 * Sign-in, sessions and the profile of the signed-in person. The session cookie is set on the HTTP response
 * (docs/spec/sessions.md#sign-in).
 */
import { invalidInput } from "../../errors.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import type { SelectedAccount } from "../../services/accounts/accounts.js";
import { updateProfileInput } from "../../services/accounts/profiles.js";
import { parseInput } from "../../services/requests/input.js";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, SESSIONS_PER_ACCOUNT_MAX } from "../../services/sessions/limits.js";
import type { SelectedSession } from "../../services/sessions/sessions.js";
import { changePasswordInput, type SignedIn, signInInput, signUpInput } from "../../services/sessions/sign-in.js";
import { builder } from "../builder.js";
import type { BrowserAnswer, GraphQLContext } from "../context.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const PASSWORD = `A password of ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.`;

const Session = builder.prismaObject("Session", {
  description: "A browser session of the account. Visible to sessions only.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.sessions.getMany(ctx, ids, selectionOf(ctx, info, [], "Session"))),
  ),
  fields: (t) => ({
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the session started." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When the session expires. Use before then extends it." }),
    userAgent: t.exposeString("userAgent", {
      nullable: true,
      description: "The User-Agent of the browser. Null when it sent none.",
    }),
    ipAddress: t.exposeString("ipAddress", { nullable: true, description: "The IP address of the sign-in. Null when unknown." }),
    isCurrent: t.boolean({
      description: "True for the session that makes this request. When the response opens a new session, true for that one.",
      resolve: ({ id }, _args, ctx) => {
        const opened = ctx.browser?.openedSessionId ?? null;
        return opened === null ? ctx.services.sessions.isCurrent(ctx, id) : opened === id;
      },
    }),
  }),
});

builder.prismaObjectField(Account, "sessions", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Session, name: "SessionConnection", description: "A page of sessions." },
      { name: "SessionEdge", description: "A session and its cursor." },
    ),
    nullable: true,
    description: "The account's sessions, newest first. Visible to sessions only.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page = await ctx.services.sessions.list(ctx, toPageRequest(args, "sessions"), connectionSelectionOf(ctx, info));
      return toConnection(page, "sessions", createdPosition);
    },
  }),
);

const OVER_HTTP = "Over HTTP only.";

function openedSessionPayload(name: string, description: string) {
  return builder.objectRef<SignedIn>(name).implement({
    description,
    fields: (t) => ({
      session: t.field({
        type: Session,
        description: "The new session. The response sets its cookie.",
        resolve: ({ session }) => session,
      }),
      accountId: t.exposeID("accountId", { description: "The REST ID of the account that is now signed in." }),
    }),
  });
}

const SignUpPayload = openedSessionPayload("SignUpPayload", "The result of `signUp`.");
const SignInPayload = openedSessionPayload("SignInPayload", "The result of `signIn`.");
const ChangePasswordPayload = openedSessionPayload("ChangePasswordPayload", "The result of `changePassword`.");

const SignUpInput = builder.inputType("SignUpInput", {
  description: "Parameters of `signUp`.",
  fields: (t) => ({
    email: t.string({ required: true, description: "The e-mail address to sign in with. Must not belong to another account." }),
    password: t.string({ required: true, description: PASSWORD }),
    name: t.string({ description: "The display name of the owner." }),
  }),
});

const SignInInput = builder.inputType("SignInInput", {
  description: "Parameters of `signIn`.",
  fields: (t) => ({
    email: t.string({ required: true, description: "The e-mail address, case-insensitive." }),
    password: t.string({ required: true, description: "The password of the account." }),
  }),
});

const ChangePasswordInput = builder.inputType("ChangePasswordInput", {
  description: "Parameters of `changePassword`.",
  fields: (t) => ({
    currentPassword: t.string({ required: true, description: "The current password of the account." }),
    newPassword: t.string({ required: true, description: PASSWORD }),
  }),
});

/** Aliases that repeat the field in one operation would evade the limit on attempts (docs/spec/graphql.md#limits). */
const ONE_SIGN_IN = { isOnePerOperation: true };

builder.mutationField("signUp", (t) =>
  t.field({
    type: SignUpPayload,
    nullable: true,
    description: `Creates an account and signs in to it, when this gateway has its own sign-in. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignUpInput, required: true, description: "The account to create." }) },
    resolve: (_root, { input }, ctx, info) =>
      opening(ctx, (browser) =>
        ctx.services.signIn.signUp(ctx, parseInput(signUpInput, input), browser, selectionOf(ctx, info, ["session"])),
      ),
  }),
);

builder.mutationField("signIn", (t) =>
  t.field({
    type: SignInPayload,
    nullable: true,
    description: `Signs in with an e-mail address and a password, always into a new session, when this gateway has its own sign-in. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignInInput, required: true, description: "The credentials." }) },
    resolve: (_root, { input }, ctx, info) =>
      opening(ctx, (browser) =>
        ctx.services.signIn.signIn(ctx, parseInput(signInInput, input), browser, selectionOf(ctx, info, ["session"])),
      ),
  }),
);

builder.mutationField("changePassword", (t) =>
  t.field({
    type: ChangePasswordPayload,
    nullable: true,
    description: `Changes the password, ends all sessions of the account and opens a new one. Sessions only. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: ChangePasswordInput, required: true, description: "The current and the new password." }) },
    resolve: (_root, { input }, ctx, info) =>
      opening(ctx, (browser) => {
        const change = parsePermitted(ctx, requireSession, changePasswordInput, input);
        return ctx.services.signIn.changePassword(ctx, change, browser, selectionOf(ctx, info, ["session"]));
      }),
  }),
);

interface EndedSessions {
  readonly ended: readonly SelectedSession[];
}

function endedSessionsPayload<Ended extends EndedSessions>(name: string, description: string) {
  return builder.objectRef<Ended>(name).implement({
    description,
    fields: (t) => ({
      sessions: t.field({
        type: [Session],
        description: "The ended sessions, newest first.",
        complexity: { field: 1, multiplier: SESSIONS_PER_ACCOUNT_MAX },
        resolve: ({ ended }) => [...ended],
      }),
      ended: t.int({ description: "The number of ended sessions.", resolve: ({ ended }) => ended.length }),
    }),
  });
}

const SignOutInput = builder.inputType("SignOutInput", {
  description: "Parameters of `signOut`.",
  fields: (t) => ({
    isEverywhere: t.boolean({
      required: true,
      defaultValue: false,
      description: "Whether to sign out of all browsers, not just this one.",
    }),
  }),
});

const SignOutPayload = endedSessionsPayload<EndedSessions>("SignOutPayload", "The result of `signOut`.");

builder.mutationField("signOut", (t) =>
  t.field({
    type: SignOutPayload,
    nullable: true,
    description: `Ends the current session. Sessions only. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignOutInput, required: true, description: "The sessions to end." }) },
    resolve: (_root, { input }, ctx, info) =>
      answering(ctx, () => ctx.services.sessions.signOut(ctx, input, selectionOf(ctx, info, ["sessions"]))),
  }),
);

const RevokeSessionInput = builder.inputType("RevokeSessionInput", {
  description: "Parameters of `revokeSession`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the session." }) }),
});

const RevokeSessionPayload = builder.objectRef<{ readonly session: SelectedSession }>("RevokeSessionPayload").implement({
  description: "The result of `revokeSession`.",
  fields: (t) => ({
    session: t.field({ type: Session, description: "The ended session.", resolve: ({ session }) => session }),
  }),
});

builder.mutationField("revokeSession", (t) =>
  t.field({
    type: RevokeSessionPayload,
    nullable: true,
    description: "Ends a session of the account. Sessions only.",
    args: { input: t.arg({ type: RevokeSessionInput, required: true, description: "The session to end." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const id = readId(input.id, "Session", "id");
      return { session: await ctx.services.sessions.revoke(ctx, id, selectionOf(ctx, info, ["session"])) };
    },
  }),
);

const RevokeOtherSessionsInput = builder.inputType("RevokeOtherSessionsInput", {
  description: "Parameters of `revokeOtherSessions`. None is required: `{}`.",
  fields: (t) => ({ clientMutationId: t.string({ description: "An identifier of the client that is returned unchanged." }) }),
});

interface RevokedSessions extends EndedSessions {
  readonly clientMutationId: string | null;
}

const RevokeOtherSessionsPayload = endedSessionsPayload<RevokedSessions>(
  "RevokeOtherSessionsPayload",
  "The result of `revokeOtherSessions`.",
);

builder.objectField(RevokeOtherSessionsPayload, "clientMutationId", (t) =>
  // Relay's name for it. It is text of the client, not an ID of the gateway.
  t.exposeID("clientMutationId", { nullable: true, description: "The `clientMutationId` of the input. Null when none was sent." }),
);

builder.mutationField("revokeOtherSessions", (t) =>
  t.field({
    type: RevokeOtherSessionsPayload,
    nullable: true,
    description: "Ends all sessions of the account except the current one. Sessions only.",
    args: { input: t.arg({ type: RevokeOtherSessionsInput, required: true, description: "No parameter is required: `{}`." }) },
    resolve: async (_root, { input }, ctx, info) => ({
      ended: await ctx.services.sessions.revokeOthers(ctx, selectionOf(ctx, info, ["sessions"])),
      clientMutationId: input.clientMutationId ?? null,
    }),
  }),
);

const UpdateProfileInput = builder.inputType("UpdateProfileInput", {
  description: "Parameters of `updateProfile`. Omitted fields do not change.",
  fields: (t) => ({
    name: t.string({ description: "The display name of the owner. Null removes it." }),
    handle: t.string({
      description:
        "The handle: 1 to 39 of the letters a to z, digits and dashes, not starting with a dash. Must not belong to another account.",
    }),
    image: t.string({ description: "The https URL of a picture. Null removes it." }),
  }),
});

const UpdateProfilePayload = builder.objectRef<{ readonly account: SelectedAccount }>("UpdateProfilePayload").implement({
  description: "The result of `updateProfile`.",
  fields: (t) => ({ account: t.field({ type: Account, description: "The account after the change.", resolve: ({ account }) => account }) }),
});

builder.mutationField("updateProfile", (t) =>
  t.field({
    type: UpdateProfilePayload,
    nullable: true,
    description: "Updates the profile of the account. Sessions only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateProfileInput, required: true, description: "The changes." }) },
    resolve: async (_root, { input }, ctx, info) => {
      await ctx.services.profiles.update(ctx, parsePermitted(ctx, requireSession, updateProfileInput, input));
      return { account: await ctx.services.accounts.own(ctx, selectionOf(ctx, info, ["account"])) };
    },
  }),
);

/** As `answering`, for operations that sign the browser in. */
function opening(ctx: GraphQLContext, work: (browser: BrowserAnswer) => Promise<SignedIn>): Promise<SignedIn> {
  return answering(ctx, async (browser) => {
    const signedIn = await work(browser);
    browser.openedSessionId = signedIn.sessionId;
    return signedIn;
  });
}

/** Sets the cookies that `work` returns on the HTTP answer. Rejects with BAD_REQUEST where there is none. */
export async function answering<Result extends { readonly cookies: readonly string[] }>(
  { browser }: GraphQLContext,
  work: (browser: BrowserAnswer) => Promise<Result>,
): Promise<Result> {
  if (browser === null) throw invalidInput("A WebSocket cannot set the session's cookie: send this over HTTP.");
  browser.assertMaySignIn();
  const result = await work(browser);
  for (const line of result.cookies) browser.addCookie(line);
  return result;
}
