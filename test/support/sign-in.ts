/** Signed-in people for tests: `signUp(app)` makes an account with a session, `signedIn(person)` the headers of a request in it. */
import { pino } from "pino";
import type { RequestContext } from "../../src/context.js";
import { grantCreditsInput } from "../../src/services/accounts/account-administration.js";
import { signInInput, signUpInput } from "../../src/services/sessions/sign-in.js";
import type { TestApp } from "./app.js";

export interface Person {
  readonly accountId: string;
  readonly sessionId: string;
  readonly email: string;
  readonly password: string;
  /** What the browser sends as `Cookie`. */
  readonly cookie: string;
}

export interface PersonOptions {
  /** A unique address by default. */
  readonly email?: string;
  readonly password?: string;
  readonly name?: string;
  /** Bought ones, beside what the tier gives: none unless stated. */
  readonly credits?: number;
}

let people = 0;

/** A new account and its first session. */
export async function signUp(app: Pick<TestApp, "services">, options: PersonOptions = {}): Promise<Person> {
  people += 1;
  const { email = `person-${people}-${Date.now().toString(36)}@example.com`, password = "correct horse battery", name } = options;
  const input = signUpInput.parse({ email, password, ...(name !== undefined && { name }) });
  const { cookies, ...rest } = await app.services.signIn.signUp(nobody(), input, { userAgent: "test" });
  if (options.credits !== undefined) await giveCredits(app, rest.accountId, options.credits);
  return { ...rest, email, password, cookie: cookieOf(cookies) };
}

/** As an operator gives them. */
export async function giveCredits(app: Pick<TestApp, "services">, accountId: string, credits: number): Promise<void> {
  const operator = { kind: "session", accountId, sessionId: accountId, isOperator: true } as const;
  const input = grantCreditsInput.parse({ accountId, bucket: "pack", credits });
  await app.services.accountAdministration.grantCredits({ ...nobody(), caller: operator }, input);
}

/** Another session of the same person. */
export async function signIn(app: Pick<TestApp, "services">, person: Pick<Person, "email" | "password">): Promise<Person> {
  const { email, password } = person;
  const { cookies, ...rest } = await app.services.signIn.signIn(nobody(), signInInput.parse({ email, password }), { userAgent: "test" });
  return { ...rest, email, password, cookie: cookieOf(cookies) };
}

/** What a browser sends with a request that one of our own pages makes. */
export function signedIn({ cookie }: Pick<Person, "cookie">): Record<string, string> {
  return { Cookie: cookie, "Sec-Fetch-Site": "same-origin" };
}

/** `name=value` of the first `Set-Cookie` line. */
export function cookieOf(lines: readonly string[]): string {
  return lines[0]?.split(";", 1)[0] ?? "";
}

/** A request without credentials, for services that are called directly. */
export function nobody(): RequestContext {
  return {
    caller: { kind: "anonymous" },
    requestId: "test",
    clientAddress: "127.0.0.1",
    signal: new AbortController().signal,
    log: pino({ level: "silent" }),
  };
}
