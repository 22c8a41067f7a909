/** Signing in, and the sessions and profile of whoever is signed in. The cookie goes with the HTTP answer (docs/spec/sessions.md#sign-in). */
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

const PASSWORD = `${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.`;

const Session = builder.prismaObject("Session", {
  description: "A browser in which the account is signed in. Only a session may see it.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.sessions.getMany(ctx, ids, selectionOf(ctx, info, [], "Session"))),
  ),
  fields: (t) => ({
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was signed in." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When it ends. Later, when it is used before." }),
    userAgent: t.exposeString("userAgent", {
      nullable: true,
      description: "What the browser called itself. Null: it did not say.",
    }),
    ipAddress: t.exposeString("ipAddress", { nullable: true, description: "Where it signed in from. Null: it is not known." }),
    isCurrent: t.boolean({
      description: "True for the session that asks; where the answer opens a new one, for that.",
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
      { type: Session, name: "SessionConnection", description: "Sessions, page by page." },
      { name: "SessionEdge", description: "A session, and its place in the list." },
    ),
    nullable: true,
    description: "Where the account is signed in, newest first. Only a session may see them.",
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

/** What opens a session answers it, and whose it is. */
function openedSessionPayload(name: string, description: string) {
  return builder.objectRef<SignedIn>(name).implement({
    description,
    fields: (t) => ({
      session: t.field({
        type: Session,
        description: "The session that was opened. Its cookie is set by the answer.",
        resolve: ({ session }) => session,
      }),
      accountId: t.exposeID("accountId", { description: "The REST id of the account that is signed in now." }),
    }),
  });
}

const SignUpPayload = openedSessionPayload("SignUpPayload", "A new account, signed in.");
const SignInPayload = openedSessionPayload("SignInPayload", "Whoever has signed in.");
const ChangePasswordPayload = openedSessionPayload("ChangePasswordPayload", "Whoever has changed their password.");

const SignUpInput = builder.inputType("SignUpInput", {
  description: "The account to be made.",
  fields: (t) => ({
    email: t.string({ required: true, description: "The e-mail address to sign in with. Nobody else may have it." }),
    password: t.string({ required: true, description: PASSWORD }),
    name: t.string({ description: "What its owner is called." }),
  }),
});

const SignInInput = builder.inputType("SignInInput", {
  description: "Who signs in.",
  fields: (t) => ({
    email: t.string({ required: true, description: "The e-mail address, in any case." }),
    password: t.string({ required: true, description: "The account's password." }),
  }),
});

const ChangePasswordInput = builder.inputType("ChangePasswordInput", {
  description: "The password as it is, and as it is to be.",
  fields: (t) => ({
    currentPassword: t.string({ required: true, description: "The one that the account has now." }),
    newPassword: t.string({ required: true, description: PASSWORD }),
  }),
});

/** A repetition by alias would dodge the limit on attempts (docs/spec/graphql.md#limits). */
const ONE_SIGN_IN = { isOnePerOperation: true };

builder.mutationField("signUp", (t) =>
  t.field({
    type: SignUpPayload,
    nullable: true,
    description: `Makes an account and signs in to it, where the gateway signs people in. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignUpInput, required: true, description: "The account to be made." }) },
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
    description: `Signs in with an e-mail address and a password, always into a new session, where the gateway signs people in. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignInInput, required: true, description: "Who signs in." }) },
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
    description: `Changes the password, ends every session of the account and opens a new one. Sessions only. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: ChangePasswordInput, required: true, description: "The password as it is, and as it is to be." }) },
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

/** What ends sessions answers those that it has ended. */
function endedSessionsPayload<Ended extends EndedSessions>(name: string, description: string) {
  return builder.objectRef<Ended>(name).implement({
    description,
    fields: (t) => ({
      sessions: t.field({
        type: [Session],
        description: "What was known of the sessions that it ended, newest first.",
        complexity: { field: 1, multiplier: SESSIONS_PER_ACCOUNT_MAX },
        resolve: ({ ended }) => [...ended],
      }),
      ended: t.int({ description: "How many sessions it ended.", resolve: ({ ended }) => ended.length }),
    }),
  });
}

const SignOutInput = builder.inputType("SignOutInput", {
  description: "Where to sign out.",
  fields: (t) => ({
    isEverywhere: t.boolean({
      required: true,
      defaultValue: false,
      description: "Whether to sign out in every browser, not only in this one.",
    }),
  }),
});

const SignOutPayload = endedSessionsPayload<EndedSessions>("SignOutPayload", "Whoever has signed out.");

builder.mutationField("signOut", (t) =>
  t.field({
    type: SignOutPayload,
    nullable: true,
    description: `Ends the session that asks. Sessions only. ${OVER_HTTP}`,
    extensions: ONE_SIGN_IN,
    args: { input: t.arg({ type: SignOutInput, required: true, description: "Where." }) },
    resolve: (_root, { input }, ctx, info) =>
      answering(ctx, () => ctx.services.sessions.signOut(ctx, input, selectionOf(ctx, info, ["sessions"]))),
  }),
);

const RevokeSessionInput = builder.inputType("RevokeSessionInput", {
  description: "The session to be ended.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which session." }) }),
});

const RevokeSessionPayload = builder.objectRef<{ readonly session: SelectedSession }>("RevokeSessionPayload").implement({
  description: "A session that has been ended.",
  fields: (t) => ({
    session: t.field({ type: Session, description: "What was known of it.", resolve: ({ session }) => session }),
  }),
});

builder.mutationField("revokeSession", (t) =>
  t.field({
    type: RevokeSessionPayload,
    nullable: true,
    description: "Ends a session of the account. Sessions only.",
    args: { input: t.arg({ type: RevokeSessionInput, required: true, description: "Which session." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const id = readId(input.id, "Session", "id");
      return { session: await ctx.services.sessions.revoke(ctx, id, selectionOf(ctx, info, ["session"])) };
    },
  }),
);

const RevokeOtherSessionsInput = builder.inputType("RevokeOtherSessionsInput", {
  description: "Nothing has to be stated: `{}`.",
  fields: (t) => ({ clientMutationId: t.string({ description: "Answered as it was sent." }) }),
});

interface RevokedSessions extends EndedSessions {
  readonly clientMutationId: string | null;
}

const RevokeOtherSessionsPayload = endedSessionsPayload<RevokedSessions>(
  "RevokeOtherSessionsPayload",
  "An account that is signed in here alone.",
);

builder.objectField(RevokeOtherSessionsPayload, "clientMutationId", (t) =>
  // Relay's name for it, text of the client's own and no id of ours.
  t.exposeID("clientMutationId", { nullable: true, description: "As it was sent. Null: it was not." }),
);

builder.mutationField("revokeOtherSessions", (t) =>
  t.field({
    type: RevokeOtherSessionsPayload,
    nullable: true,
    description: "Ends every session of the account but the one that asks. Sessions only.",
    args: { input: t.arg({ type: RevokeOtherSessionsInput, required: true, description: "Nothing has to be stated: `{}`." }) },
    resolve: async (_root, { input }, ctx, info) => ({
      ended: await ctx.services.sessions.revokeOthers(ctx, selectionOf(ctx, info, ["sessions"])),
      clientMutationId: input.clientMutationId ?? null,
    }),
  }),
);

const UpdateProfileInput = builder.inputType("UpdateProfileInput", {
  description: "Only the fields that are sent change.",
  fields: (t) => ({
    name: t.string({ description: "What its owner is called. Null takes it away." }),
    handle: t.string({ description: "1 to 39 of the letters a to z, digits and dashes; not a dash first. Nobody else may have it." }),
    image: t.string({ description: "The https URL of a picture. Null takes it away." }),
  }),
});

const UpdateProfilePayload = builder.objectRef<{ readonly account: SelectedAccount }>("UpdateProfilePayload").implement({
  description: "An account whose profile has been changed.",
  fields: (t) => ({ account: t.field({ type: Account, description: "As it now is.", resolve: ({ account }) => account }) }),
});

builder.mutationField("updateProfile", (t) =>
  t.field({
    type: UpdateProfilePayload,
    nullable: true,
    description: "Changes how the account and its owner are called. Sessions only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateProfileInput, required: true, description: "What changes." }) },
    resolve: async (_root, { input }, ctx, info) => {
      await ctx.services.profiles.update(ctx, parsePermitted(ctx, requireSession, updateProfileInput, input));
      return { account: await ctx.services.accounts.own(ctx, selectionOf(ctx, info, ["account"])) };
    },
  }),
);

/** As `answering`, for what signs the browser in. */
function opening(ctx: GraphQLContext, work: (browser: BrowserAnswer) => Promise<SignedIn>): Promise<SignedIn> {
  return answering(ctx, async (browser) => {
    const signedIn = await work(browser);
    browser.openedSessionId = signedIn.sessionId;
    return signedIn;
  });
}

/** Sets what `work` answers with as cookies of the HTTP answer. Rejects with BAD_REQUEST where there is none. */
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
