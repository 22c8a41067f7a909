/**
 * GitHub as a sign-in provider: the authorization code flow of an OAuth app, with PKCE.
 *
 * A GitHub user is matched with an account of the same e-mail address only when both GitHub and we have verified that address. Otherwise an
 * account could be taken over: a person who signed up with a password may have typed any address.
 */
import { createHash } from "node:crypto";
import type { OAuth2Tokens, OAuth2UserInfo, OAuthProvider } from "better-auth";
import * as z from "zod";
import { type AppError, conflict, permissionDenied, upstreamFailed } from "../../errors.js";
import type { GitHubSettings } from "../../lib/settings.js";
import { toShown } from "../../lib/storable-text.js";
import type { Database } from "../../store/database.js";
import { PROFILE_NAME_CHARS_MAX } from "../accounts/limits.js";
import { EMAIL_CHARS_MAX, GITHUB_TIMEOUT_MS } from "./limits.js";

export const GITHUB = "github";

/** A GitHub user in our terms. */
interface GitHubPerson {
  /** GitHub's id, which never changes. */
  readonly id: string;
  readonly user: OAuth2UserInfo & { readonly email: string; readonly githubUsername: string };
}

const tokenAnswer = z.object({ access_token: z.string().min(1), token_type: z.string().nullish(), scope: z.string().nullish() });
const userAnswer = z.object({
  id: z.int(),
  login: z.string().min(1),
  name: z.string().nullish(),
  avatar_url: z.url({ protocol: /^https?$/ }).nullish(),
});
const emailsAnswer = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));
/** An address that passes `emailInput`, so that it resembles no other. */
const usableEmail = z.email().max(EMAIL_CHARS_MAX).toLowerCase();

export function githubProvider(
  settings: GitHubSettings,
  database: Database,
  isSignUpOpen: boolean,
): OAuthProvider<Pick<GitHubPerson, "id">> {
  return {
    id: GITHUB,
    name: "GitHub",
    // The library then creates no account.
    options: { disableSignUp: !isSignUpOpen },
    accountSubject: ({ profile }) => profile.id,
    createAuthorizationURL: ({ state, codeVerifier, redirectURI }) => toAuthorizationUrl(settings, { state, codeVerifier, redirectURI }),
    validateAuthorizationCode: ({ code, codeVerifier, redirectURI }) => exchange(settings, { code, codeVerifier, redirectURI }),
    getUserInfo: async ({ accessToken }) => {
      const person = await readPerson(settings, accessToken ?? "");
      await match(database, person);
      return { user: person.user, data: { id: person.id } };
    },
  };
}

function toAuthorizationUrl(
  { clientId, webUrl }: GitHubSettings,
  { state, codeVerifier, redirectURI }: { readonly state: string; readonly codeVerifier: string; readonly redirectURI: string },
): URL {
  const url = new URL(`${webUrl}/login/oauth/authorize`);
  const parameters = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectURI,
    scope: "read:user user:email",
    state,
    code_challenge: createHash("sha256").update(codeVerifier).digest("base64url"),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}

/** Null for a code that GitHub refuses, which it reports with status 200 and an `error`. */
async function exchange(
  { clientId, clientSecret, webUrl }: GitHubSettings,
  { code, codeVerifier, redirectURI }: { readonly code: string; readonly codeVerifier?: string | undefined; readonly redirectURI: string },
): Promise<OAuth2Tokens | null> {
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    client_id: clientId,
    client_secret: clientSecret,
    code,
    redirect_uri: redirectURI,
    ...(codeVerifier !== undefined && { code_verifier: codeVerifier }),
  });
  const answer = tokenAnswer.safeParse(await ask(`${webUrl}/login/oauth/access_token`, { method: "POST", body }));
  if (!answer.success) return null;
  const { access_token: accessToken, token_type: tokenType, scope } = answer.data;
  return { accessToken, ...(tokenType && { tokenType }), scopes: scope ? scope.split(",") : [] };
}

async function readPerson({ apiUrl }: GitHubSettings, accessToken: string): Promise<GitHubPerson> {
  const headers = { Authorization: `Bearer ${accessToken}` };
  const [user, emails] = await Promise.all([
    ask(`${apiUrl}/user`, { headers }).then((answer) => parse(userAnswer, answer)),
    ask(`${apiUrl}/user/emails`, { headers }).then((answer) => parse(emailsAnswer, answer)),
  ]);
  const primary = emails.find((email) => email.primary);
  const email = usableEmail.safeParse(primary?.email);
  if (!primary?.verified || !email.success) {
    throw permissionDenied("GitHub has not verified your primary e-mail address. Verify it there, then sign in again.");
  }
  return {
    id: String(user.id),
    user: {
      name: toShown((user.name ?? "").slice(0, PROFILE_NAME_CHARS_MAX)).trim() || user.login,
      email: email.data,
      emailVerified: true,
      githubUsername: user.login,
      ...(user.avatar_url && { image: user.avatar_url }),
    },
  };
}

/** Matches the user by GitHub's id, else by address. Their GitHub name may have changed. */
async function match({ prisma }: Database, { id, user: { email, githubUsername } }: GitHubPerson): Promise<void> {
  const method = await prisma.signInMethod.findUnique({
    where: { providerId_providerAccountId: { providerId: GITHUB, providerAccountId: id } },
    select: { accountId: true },
  });
  const account = await prisma.account.findUnique({
    where: method ? { id: method.accountId } : { email },
    select: { id: true, isEmailVerified: true },
  });
  if (!account) return;
  if (!method && !account.isEmailVerified) {
    throw conflict("An account with this e-mail address already exists. Sign in with its password.");
  }
  await prisma.account.update({ where: { id: account.id }, data: { githubUsername } });
}

async function ask(url: string, init: RequestInit): Promise<unknown> {
  try {
    const response = await fetch(url, {
      ...init,
      headers: { ...init.headers, Accept: "application/json", "User-Agent": "sluice" },
      redirect: "error",
      signal: AbortSignal.timeout(GITHUB_TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`GitHub answered ${response.status}`);
    return await response.json();
  } catch (error) {
    throw unreadable(error);
  }
}

function parse<Output>(schema: z.ZodType<Output>, answer: unknown): Output {
  const parsed = schema.safeParse(answer);
  if (!parsed.success) throw unreadable(parsed.error);
  return parsed.data;
}

function unreadable(cause: unknown): AppError {
  return upstreamFailed("GitHub did not respond. Try again in a moment.", { cause });
}
