/** The pages on which people sign up, in and out (docs/spec/sessions.md#sign-in). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError } from "../../errors.js";
import { parseQuery } from "../../http/context.js";
import type { Exchange } from "../../http/exchange.js";
import { PROFILE_NAME_CHARS_MAX } from "../../services/accounts/limits.js";
import { authorizationQuery } from "../../services/authorizations/request-input.js";
import { parseInput } from "../../services/requests/input.js";
import type { Services } from "../../services/services.js";
import { EMAIL_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../services/sessions/limits.js";
import { type Browser, signInInput, signUpClosed, signUpInput } from "../../services/sessions/sign-in.js";
import type { Route } from "../route.js";
import type { FormFields } from "./form.js";
import { errorSummary, type FieldsByParam, invalidMark } from "./form-errors.js";
import { type Html, html } from "./html.js";
import type { Page, PageAnswer } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { appSection, nameOf } from "./requesting-app.js";
import { HOME_PATH, returnToInput, returnToQuery } from "./return-to.js";

const pageQuery = z.object({ return_to: returnToInput });
const signInForm = signInInput.extend({ return_to: returnToInput });
const signUpForm = signUpInput.extend({ return_to: returnToInput });
const parameter = z.string().max(2_048).optional();
const gitHubAnswer = z.object({ code: parameter, state: parameter, error: parameter });

const FIELDS: FieldsByParam = new Map([
  ["email", { id: "email", label: "The e-mail address" }],
  ["password", { id: "password", label: "The password" }],
  ["name", { id: "name", label: "The name" }],
]);

type SignInServices = Pick<Services, "signIn" | "gitHubSignIn" | "sessions"> & PurposeServices;

export function addSignInPages(route: Route, page: PageEndpoint, services: SignInServices): void {
  const { signIn, gitHubSignIn, sessions } = services;
  /** Other actions on the page, and the purpose of signing in. */
  const offers = async (ctx: RequestContext, base: string, returnTo: string | undefined) => ({
    gitHubOrigin: gitHubSignIn.origin,
    isSignUpOpen: signIn.isSignUpOpen,
    passwordHelp: signIn.passwordHelp,
    returnTo,
    purpose: await purposeOf(ctx, base, returnTo, services),
  });
  const signInAgain = async (ctx: RequestContext, { error, fields, request }: Refusal) =>
    signInPage({ ...request, ...enteredValues(fields), error, ...(await offers(ctx, request.base, returnToOf(fields))) });
  const signUpFor = async (ctx: RequestContext, shown: FormPage) =>
    signIn.isSignUpOpen
      ? signUpPage({ ...shown, purpose: await purposeOf(ctx, shown.base, shown.returnTo, services) })
      : signUpClosedPage(shown);

  route("/sign-in", {
    GET: page({
      query: pageQuery,
      handler: async (ctx, { query, ...shown }) =>
        shown.session
          ? { redirectTo: homeOf(shown, query.return_to) }
          : signInPage({ ...shown, ...(await offers(ctx, shown.base, query.return_to)) }),
    }),
    POST: page({
      form: signInForm,
      handler: async (ctx, { form: { return_to, ...input }, ...shown }) =>
        leave(shown, return_to, await signIn.signIn(ctx, input, browserOf(shown.exchange))),
      onRefused: signInAgain,
    }),
  });
  route("/sign-up", {
    GET: page({
      query: pageQuery,
      handler: (ctx, { query, ...shown }) => signUpFor(ctx, { ...shown, returnTo: query.return_to }),
    }),
    POST: page({
      form: signUpForm,
      handler: async (ctx, { form: { return_to, ...input }, ...shown }) =>
        leave(shown, return_to, await signIn.signUp(ctx, input, browserOf(shown.exchange))),
      onRefused: (ctx, { error, fields, request }) =>
        signUpFor(ctx, { ...request, ...enteredValues(fields), returnTo: returnToOf(fields), error }),
    }),
  });
  route("/sign-out", {
    POST: page({
      form: pageQuery,
      handler: async (ctx, { form, ...shown }) => {
        const { cookies } = shown.session ? await sessions.signOut(ctx) : { cookies: [] };
        for (const line of cookies) shown.exchange.addCookie(line);
        return { redirectTo: form.return_to ?? `${shown.base}/sign-in` };
      },
    }),
  });
  route("/sign-in/github", {
    POST: page({
      form: pageQuery,
      handler: async (ctx, { form, ...shown }) => {
        const { redirectTo, cookies } = await gitHubSignIn.start(ctx, homeOf(shown, form.return_to));
        for (const line of cookies) shown.exchange.addCookie(line);
        return { redirectTo };
      },
      onRefused: signInAgain,
    }),
  });
  route("/api/auth/callback/github", {
    GET: page({
      query: gitHubAnswer,
      handler: async (ctx, { query, ...shown }) => {
        const browser = { ...browserOf(shown.exchange), cookies: shown.exchange.req.headers.cookie };
        const signedIn = await gitHubSignIn.finish(ctx, query, browser);
        return leave(shown, signedIn.returnTo, signedIn);
      },
      onRefused: async (ctx, { error, request }) => signInPage({ ...request, error, ...(await offers(ctx, request.base, undefined)) }),
    }),
  });
}

interface Shown {
  readonly base: string;
  readonly exchange: Exchange;
}

interface FormPage {
  readonly base: string;
  readonly formToken: string;
  readonly returnTo?: string | undefined;
  readonly email?: string;
  readonly name?: string;
  readonly error?: AppError;
  readonly purpose?: Html | "";
}

interface Refusal {
  readonly error: AppError;
  readonly fields: FormFields;
  readonly request: Shown & { readonly formToken: string };
}

export function browserOf({ req }: Exchange): Browser {
  return { userAgent: req.headers["user-agent"] };
}

/** The signed-in answer, which sets the cookie. */
function leave({ base, exchange }: Shown, returnTo: string | undefined, { cookies }: { readonly cookies: readonly string[] }): PageAnswer {
  for (const line of cookies) exchange.addCookie(line);
  return { redirectTo: homeOf({ base }, returnTo) };
}

function homeOf({ base }: Pick<Shown, "base">, returnTo: string | undefined): string {
  return returnTo ?? `${base}${HOME_PATH}`;
}

function returnToOf({ return_to }: FormFields): string | undefined {
  return returnToInput.parse(return_to);
}

/** Without the password. */
function enteredValues({ email, name }: FormFields) {
  return {
    email: typeof email === "string" ? email : "",
    name: typeof name === "string" ? name : "",
  };
}

function signInPage({
  base,
  formToken,
  returnTo,
  email = "",
  error,
  purpose = "",
  gitHubOrigin,
  isSignUpOpen,
  passwordHelp,
}: FormPage & { readonly gitHubOrigin: string | null; readonly isSignUpOpen: boolean; readonly passwordHelp: string }): Page {
  const onward = returnToQuery(returnTo);
  const body = html`<h1>Sign in</h1>
${purpose}
${error ? errorSummary(error, FIELDS) : ""}
<form method="post" action="${base}/sign-in">
${hiddenFields(formToken, returnTo)}
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="username" maxlength="${EMAIL_CHARS_MAX}" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="${PASSWORD_CHARS_MAX}" required>
<div class="buttons"><button class="primary">Sign in</button></div>
</form>
${passwordHelp === "" ? "" : html`<p class="soft">${passwordHelp}</p>`}
${gitHubOrigin === null ? "" : gitHubForm(base, formToken, returnTo)}
${isSignUpOpen ? html`<div class="buttons"><p class="soft">New here? <a href="${base}/sign-up${onward}">Sign up</a></p></div>` : ""}`;
  return { title: "Sign in", body, ...(gitHubOrigin !== null && { formTargets: [gitHubOrigin] }) };
}

function gitHubForm(base: string, formToken: string, returnTo: string | undefined): Html {
  return html`<form method="post" action="${base}/sign-in/github">
${hiddenFields(formToken, returnTo)}
<div class="buttons"><button>Sign in with GitHub</button></div>
</form>`;
}

function signUpPage({ base, formToken, returnTo, email = "", name = "", error, purpose = "" }: FormPage): Page {
  const body = html`<h1>Create an account</h1>
${purpose}
${error ? errorSummary(error, FIELDS) : ""}
<form method="post" action="${base}/sign-up">
${hiddenFields(formToken, returnTo)}
<label for="name">Name <small>(optional)</small></label>
<input id="name" name="name" type="text" value="${name}" autocomplete="name" maxlength="${PROFILE_NAME_CHARS_MAX}"${invalidMark(error, FIELDS, "name")}>
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="username" maxlength="${EMAIL_CHARS_MAX}" required${invalidMark(error, FIELDS, "email")}>
<label for="password">Password <small>(at least ${PASSWORD_CHARS_MIN} characters)</small></label>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="${PASSWORD_CHARS_MIN}" maxlength="${PASSWORD_CHARS_MAX}" required${invalidMark(error, FIELDS, "password")}>
<div class="buttons"><button class="primary">Sign up</button></div>
</form>
<div class="buttons"><p class="soft">Already have an account? <a href="${base}/sign-in${returnToQuery(returnTo)}">Sign in</a></p></div>`;
  return { title: "Sign up", body };
}

function signUpClosedPage({ base, returnTo }: FormPage): Page {
  const body = html`<h1>Create an account</h1>
${errorSummary(signUpClosed())}
<div class="buttons"><p class="soft">Already have an account? <a href="${base}/sign-in${returnToQuery(returnTo)}">Sign in</a></p></div>`;
  return { title: "Sign up", body, status: 403 };
}

export function hiddenFields(formToken: string, returnTo?: string): Html {
  return html`<input type="hidden" name="form_token" value="${formToken}">
${returnTo === undefined ? "" : html`<input type="hidden" name="return_to" value="${returnTo}">`}`;
}

// The purpose of signing in, from the address to return to; shown on the sign-in and sign-up pages.

type PurposeServices = Pick<Services, "authorizations" | "developmentBroker">;

/** Nothing for other addresses, and for an invalid request, whose own page explains the fault. */
async function purposeOf(ctx: RequestContext, base: string, returnTo: string | undefined, services: PurposeServices): Promise<Html | ""> {
  if (!returnTo?.startsWith(`${base}/`)) return "";
  try {
    return await describePurpose(ctx, returnTo.slice(base.length), services);
  } catch (error) {
    if (error instanceof AppError) return "";
    throw error;
  }
}

async function describePurpose(
  ctx: RequestContext,
  address: string,
  { authorizations, developmentBroker }: PurposeServices,
): Promise<Html | ""> {
  const { parameters } = parseQuery(address);
  switch (address.split("?", 1)[0]) {
    case "/authorize": {
      const request = await authorizations.check(ctx, parseInput(authorizationQuery, parameters));
      return html`<div class="purpose"><p><strong><bdi>${nameOf(request)}</bdi></strong> requests access to your credits. After you sign in, you can allow or deny it and set a limit.</p>
${appSection(request)}</div>`;
    }
    case "/device":
      return html`<p class="purpose">Sign in to connect a device that requests access to your credits. You can then allow or deny it.</p>`;
    case "/integrations/connect": {
      const { app } = await developmentBroker.view(ctx, typeof parameters.token === "string" ? parameters.token : "");
      return html`<p class="purpose">Sign in to connect <strong><bdi>${app.name ?? app.toolkit}</bdi></strong> to your account.</p>`;
    }
    default:
      return "";
  }
}
