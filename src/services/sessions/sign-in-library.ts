/**
 * The sign-in library (better-auth) on our tables: it checks passwords, makes sessions, and speaks OAuth with GitHub. It is loaded on the
 * first sign-in. For the tasks that it is not given see docs/decisions/sign-in-library.md.
 */
import type { BetterAuthOptions, DBAdapter } from "better-auth";
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { headerText } from "../../lib/header-text.js";
import { createId } from "../../lib/ids.js";
import type { GitHubSettings } from "../../lib/settings.js";
import { withoutTrailing } from "../../lib/urls.js";
import type { Database } from "../../store/database.js";
import { chooseHandle } from "../accounts/profiles.js";
import { githubProvider } from "./github.js";
import { SESSION_SECONDS, USER_AGENT_CHARS_MAX } from "./limits.js";
import type { Passwords } from "./passwords.js";

export interface SignInLibraryOptions {
  readonly database: Database;
  readonly passwords: Passwords;
  readonly clock: Clock;
  readonly log: Logger;
  /** Signs its cookies and encrypts tokens of other providers. */
  readonly secret: Buffer;
  /** The sign-in address, without a slash at the end. */
  readonly authUrl: string;
  readonly github: GitHubSettings | null;
  /** False: sign-in with GitHub creates no account. */
  readonly isSignUpOpen: boolean;
  readonly hashToken: (token: string) => string;
}

/** Passes the client address to the library, which reads it from a header. */
const CLIENT_ADDRESS_HEADER = "x-sluice-client-address";
/** Path of its routes on the authorization host. Only GitHub's redirect is served. */
const AUTH_PATH = "/api/auth";

/**
 * Loads the library on first use, and again after a failure. `options` is a function because a port chosen by the system is known only
 * then.
 */
export function signInLibraryOnDemand(options: () => SignInLibraryOptions): () => Promise<SignInLibrary> {
  let loaded: Promise<SignInLibrary> | null = null;
  return () => {
    loaded ??= loadSignInLibrary(options()).catch((error: unknown) => {
      loaded = null;
      throw error;
    });
    return loaded;
  };
}

export type SignInLibrary = Awaited<ReturnType<typeof loadSignInLibrary>>;

export async function loadSignInLibrary(options: SignInLibraryOptions) {
  const [{ betterAuth }, { prismaAdapter }] = await Promise.all([import("better-auth/minimal"), import("better-auth/adapters/prisma")]);
  const { passwords, secret, hashToken, database, log } = options;
  const authUrl = new URL(options.authUrl);
  const { account, session, signInMethod, verification } = database.prisma;
  // Its `account` is our sign-in method, and it looks models up by either name.
  const adapter = prismaAdapter({ person: account, session, signInMethod, verification }, { provider: "postgresql" });
  return betterAuth({
    baseURL: authUrl.origin,
    basePath: `${withoutTrailing(authUrl.pathname, "/")}${AUTH_PATH}`,
    // Its redirect for errors, which `GitHubSignIn` reads instead.
    onAPIError: { errorURL: "/refused" },
    // A list, because the library would read a single secret from the environment.
    secrets: [{ version: 1, value: secret.toString("base64") }],
    database: (all: BetterAuthOptions) => adapt(adapter(all), hashToken),
    telemetry: { enabled: false },
    // It logs the e-mail addresses of failed sign-ins.
    logger: { log: (level, message) => log.debug({ level }, `sign-in: ${message}`) },
    ...tables,
    advanced: {
      database: { generateId: () => createId() },
      cookiePrefix: "sluice",
      useSecureCookies: authUrl.protocol === "https:",
      ipAddress: { ipAddressHeaders: [CLIENT_ADDRESS_HEADER] },
    },
    emailAndPassword: {
      enabled: true,
      // `SignIn` makes accounts with a password, in one transaction.
      disableSignUp: true,
      password: { hash: (password) => passwords.hash(password), verify: ({ password, hash }) => passwords.verify(password, hash) },
    },
    databaseHooks: hooks(options),
    plugins: options.github ? [gitHubPlugin(options.github, options)] : [],
  });
}

/** The library's names of our tables and columns, where they differ. */
const tables = {
  user: {
    modelName: "person",
    fields: { emailVerified: "isEmailVerified" },
    additionalFields: {
      handle: { type: "string", required: false, input: false },
      tier: { type: "string", required: false, input: false },
      // Set from GitHub's profile, which counts as input; there is no other input.
      githubUsername: { type: "string", required: false },
    },
  },
  session: { modelName: "session", fields: { userId: "accountId" } },
  account: {
    modelName: "signInMethod",
    fields: { userId: "accountId", accountId: "providerAccountId" },
    encryptOAuthTokens: true,
  },
  verification: { modelName: "verification" },
} as const satisfies Partial<BetterAuthOptions>;

/** Columns that every new account has by default. */
export const NEW_ACCOUNT = { tier: "free" } as const;

const NO_TOKENS = { accessToken: null, refreshToken: null, idToken: null };

function hooks({ database, clock }: SignInLibraryOptions): BetterAuthOptions["databaseHooks"] {
  const { prisma } = database;
  return {
    user: {
      create: {
        before: async (user) => {
          const source = "githubUsername" in user ? String(user.githubUsername) : user.email;
          const handle = await chooseHandle(source, async (taken) => (await prisma.account.count({ where: { handle: taken } })) > 0);
          return { data: { ...user, ...NEW_ACCOUNT, handle } };
        },
      },
    },
    // Nothing reads other providers' tokens, so they are not stored.
    account: {
      create: { before: async (method) => ({ data: { ...method, ...NO_TOKENS } }) },
      update: { before: async (method) => ({ data: { ...method, ...NO_TOKENS } }) },
    },
    session: {
      create: {
        before: async (session) => ({
          data: {
            ...session,
            ipAddress: session.ipAddress || null,
            userAgent: session.userAgent || null,
            expiresAt: new Date(clock.now().getTime() + SESSION_SECONDS * 1000),
            createdAt: clock.now(),
          },
        }),
      },
    },
  };
}

interface Method {
  readonly userId: string;
}

/**
 * The adapter with two differences. The library stores tokens as they are, and never looks one up here, so we store their hash. It also
 * joins a sign-in method with its person by `accountId`, its name for another column.
 */
function adapt(adapter: DBAdapter<BetterAuthOptions>, hashToken: (token: string) => string): DBAdapter<BetterAuthOptions> {
  const withPerson = async <Row extends Method>(method: Row) => ({
    ...method,
    user: await adapter.findOne({ model: "user", where: [{ field: "id", value: method.userId }] }),
  });
  const adapted: DBAdapter<BetterAuthOptions> = {
    ...adapter,
    transaction: (work) => work(adapted),
    create: async (call) => {
      const { data } = call;
      const token = call.model === "session" && "token" in data && typeof data.token === "string" ? data.token : null;
      if (token === null) return adapter.create(call);
      return { ...(await adapter.create({ ...call, data: { ...data, token: hashToken(token) } })), token };
    },
    findOne: async <Row>({ join, ...call }: Parameters<typeof adapter.findOne>[0]): Promise<Row | null> => {
      if (call.model !== "account" || !join?.user) return adapter.findOne<Row>({ ...call, ...(join && { join }) });
      const method = await adapter.findOne<Row & Method>(call);
      return method && withPerson(method);
    },
    findMany: async <Row>({ join, ...call }: Parameters<typeof adapter.findMany>[0]): Promise<Row[]> => {
      if (call.model !== "account" || !join?.user) return adapter.findMany<Row>({ ...call, ...(join && { join }) });
      return Promise.all((await adapter.findMany<Row & Method>(call)).map(withPerson));
    },
  };
  return adapted;
}

/** GitHub as a custom provider: the library's own has fixed addresses. */
function gitHubPlugin(settings: GitHubSettings, { database, isSignUpOpen }: SignInLibraryOptions) {
  return { id: "github", init: () => ({ context: { socialProviders: [githubProvider(settings, database, isSignUpOpen)] } }) };
}

export function toLibraryHeaders(clientAddress: string, userAgent: string | undefined): Headers {
  return new Headers({ [CLIENT_ADDRESS_HEADER]: clientAddress, "user-agent": toStoredUserAgent(userAgent) });
}

/** The User-Agent as it can be stored and sent as a header. */
export function toStoredUserAgent(userAgent = ""): string {
  return headerText("userAgent", userAgent).slice(0, USER_AGENT_CHARS_MAX);
}
