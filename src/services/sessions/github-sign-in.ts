/**
 * Sign-in with GitHub (docs/spec/sessions.md#sign-in). The library stores the state between the two steps, binds it to the browser by a
 * signed cookie, and exchanges the code.
 *
 * 1. `start`: redirects the browser to GitHub with a state that works once, for ten minutes.
 * 2. `finish`: the browser returns with a code. The person is matched or created, and a session is opened.
 */
import type { RequestContext } from "../../context.js";
import { type AppError, conflict, invalidInput, permissionDenied, upstreamFailed } from "../../errors.js";
import { GITHUB } from "./github.js";
import { type Browser, type SignedIn, type SignIn, signUpClosed } from "./sign-in.js";
import { type SignInLibrary, toLibraryHeaders } from "./sign-in-library.js";
import type { SignInLimits } from "./sign-in-limits.js";

export interface GitHubSignInParts {
  readonly signIn: SignIn;
  readonly limits: SignInLimits;
  readonly library: () => Promise<SignInLibrary>;
  /** Null: not configured. */
  readonly webUrl: string | null;
}

/** Query parameters of GitHub's redirect. */
export interface GitHubAnswer {
  readonly code?: string | undefined;
  readonly state?: string | undefined;
  readonly error?: string | undefined;
}

export class GitHubSignIn {
  constructor(private readonly parts: GitHubSignInParts) {}

  /** Origin of GitHub; null when sign-in with GitHub is not configured. */
  get origin(): string | null {
    return this.parts.webUrl && new URL(this.parts.webUrl).origin;
  }

  /** Starts a sign-in. `returnTo` is a path on our host. Rejects with RATE_LIMITED. */
  async start(ctx: RequestContext, returnTo: string): Promise<{ readonly redirectTo: string; readonly cookies: readonly string[] }> {
    this.assertConfigured();
    await this.parts.limits.countStart(ctx.clientAddress);
    const { api } = await this.parts.library();
    const body = { provider: GITHUB, callbackURL: returnTo, disableRedirect: true };
    const { headers, response } = await api.signInSocial({ body, returnHeaders: true });
    return { redirectTo: response.url ?? "", cookies: headers.getSetCookie() };
  }

  /** Rejects with BAD_REQUEST for a state of another browser, FORBIDDEN, CONFLICT or UPSTREAM_ERROR. */
  async finish(
    ctx: RequestContext,
    answer: GitHubAnswer,
    browser: Browser & { readonly cookies: string | undefined },
  ): Promise<SignedIn & { readonly returnTo: string }> {
    this.assertConfigured();
    const { api, $context } = await this.parts.library();
    const headers = toLibraryHeaders(ctx.clientAddress, browser.userAgent);
    if (browser.cookies !== undefined) headers.set("cookie", browser.cookies);
    const response = await api.callbackOAuth({ method: "GET", params: { id: GITHUB }, query: { ...answer }, headers, asResponse: true });
    const cookies = response.headers.getSetCookie();
    const sessionCookie = `${(await $context).authCookies.sessionToken.name}=`;
    const made = cookies.find((line) => line.startsWith(sessionCookie));
    const location = response.headers.get("location") ?? "";
    if (made === undefined) throw toRefusal(location);
    const signedIn = await this.parts.signIn.admit(ctx, readToken(made.slice(sessionCookie.length)));
    return {
      ...signedIn,
      cookies: [...signedIn.cookies, ...cookies.filter((line) => line !== made)],
      returnTo: location,
    };
  }

  private assertConfigured(): void {
    if (this.parts.webUrl === null) throw invalidInput("GitHub sign-in is not configured on this gateway.");
  }
}

/** The library's own cookie is `<token>.<signature>`; it is not forwarded. */
function readToken(value: string): string {
  const signed = decodeURIComponent(value.split(";", 1)[0] ?? "");
  return signed.slice(0, signed.lastIndexOf("."));
}

function toRefusal(location: string): AppError {
  const reason = new URL(location, "http://localhost").searchParams.get("error") ?? "";
  if (reason === "access_denied") return permissionDenied("GitHub sign-in was denied.");
  if (reason === "signup_disabled") return signUpClosed();
  if (reason === "account_not_linked") {
    return conflict("An account with this e-mail address already exists. Sign in with its password.");
  }
  if (/^(?:state_|please_restart|invalid_callback|invalid_code|no_code)/.test(reason) || reason === "") {
    return invalidInput("The GitHub sign-in expired or was started in another browser. Start again.");
  }
  return upstreamFailed("GitHub sign-in failed. Try again in a moment.", { cause: new Error(reason) });
}
