/** The device page: the device of a code, and its requested grant (docs/spec/authorization.md#device-flow; RFC 8628 3.3, 5.4). */

import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { AppError } from "../../errors.js";
import type { AccountRow } from "../../services/accounts/accounts.js";
import { grantFormFields, toGrantChoice } from "../../services/api-keys/grant-terms.js";
import { type DeviceAuthorization, userCodeText } from "../../services/authorizations/device-authorizations.js";
import type { Services } from "../../services/services.js";
import type { Route } from "../route.js";
import { decisionFields, PERMISSION_WORDS, type Refused } from "./decision-fields.js";
import type { FormFields } from "./form.js";
import { errorSummary, type FieldsByParam } from "./form-errors.js";
import { type Html, html } from "./html.js";
import type { ListedModel } from "./model-choice.js";
import type { Page } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { ownerOf, shownName } from "./requesting-app.js";
import { HOME_PATH } from "./return-to.js";
import { hiddenFields } from "./sign-in.js";
import { credits, days, moment } from "./words.js";

/** Common data of these pages. */
interface DevicePage {
  readonly person: AccountRow;
  readonly formToken: string;
  readonly base: string;
}

const CODE_FIELD = { id: "user_code", label: "The code" };
/** By the names in the form and in the service. */
const CODE_FIELDS: FieldsByParam = new Map([
  ["user_code", CODE_FIELD],
  ["userCode", CODE_FIELD],
]);

/** The form for the code. A code from a link is filled in, and still has to be confirmed. */
function codePage(shown: DevicePage, userCode: string, error?: AppError): Page {
  const { formToken, base } = shown;
  const body = html`<h1>Connect a device</h1>
${personSection(shown)}
${error ? errorSummary(error, CODE_FIELDS) : ""}
<form method="post" action="${base}/device">
${hiddenFields(formToken)}
<label for="user_code">Code shown on your device</label>
<input type="text" class="code" id="user_code" name="user_code" value="${userCode}" required autofocus maxlength="40" autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX" aria-describedby="${error ? "wrong code-hint" : "code-hint"}">
<small id="code-hint">Eight letters, as shown on your own device. Never enter a code that someone sent you.</small>
<div class="buttons"><button type="submit" class="primary">Continue</button></div>
</form>`;
  return { title: "Connect a device", body };
}

export interface Confirmation extends DevicePage {
  readonly device: DeviceAuthorization;
  /** Nanocredits of the account. */
  readonly balance: bigint;
  readonly models: readonly ListedModel[];
  /** Entered values and their errors. */
  readonly refused?: Refused;
}

function confirmationPage({ device, balance, models, refused, ...shown }: Confirmation): Page {
  const { formToken, base } = shown;
  const { app, userCode, asked, creditBudgetMax } = device;
  const body = html`<h1>${app ? html`Allow <bdi>${shownName(app.name)}</bdi> to spend your credits?` : "Allow this device to spend your credits?"}</h1>
${personSection(shown)}
<p>Your device must show this code:</p>
<p class="code-shown">${userCode}</p>
<p class="note"><strong>Continue only if you started this yourself</strong> and the device is yours. If someone sent you here, select Deny: the device is theirs and would spend your credits.</p>
${appSection(device)}
<form method="post" action="${base}/device/decision">
${hiddenFields(formToken)}
<input type="hidden" name="user_code" value="${userCode}">
${decisionFields({ asked, creditBudgetMax, balance, person: shown.person, models, refused })}
</form>`;
  return { title: app ? `Allow ${shownName(app.name)} to spend your credits?` : "Allow this device to spend your credits?", body };
}

/** The result of this person's decision. */
function donePage(device: DeviceAuthorization, base: string): Page {
  const [title, text] = outcomeOf(device);
  const body = html`<h1>${title}</h1>
<p role="status">${text}</p>
${device.status === "denied" ? "" : grantedOf(device)}
<p class="soft">You can close this page, or <a href="${base}${HOME_PATH}">open the dashboard</a>.</p>`;
  return { title, body };
}

function outcomeOf({ status, app }: DeviceAuthorization): [title: string, text: string] {
  const name = app === null ? "The device" : shownName(app.name);
  if (status === "denied") return ["Denied", `${name} did not get access.`];
  if (status === "expired") return ["Expired", `The code expired before ${name} received its key. Request a new code on the device.`];
  if (status === "used") return ["Connected", `${name} has received its key.`];
  return ["Allowed", `${name} receives its key within seconds. Return to the device.`];
}

function grantedOf({ granted }: DeviceAuthorization): Html | "" {
  if (granted === null) return "";
  const { creditBudget, expiresInDays, models, permissions, marginPercent } = granted;
  return html`<dl>
<dt>Budget</dt><dd>${credits(creditBudget)}</dd>
<dt>Expires</dt><dd>after ${days(expiresInDays)}</dd>
${marginPercent === 0 ? "" : html`<dt>App margin</dt><dd>${marginPercent}% on top of prices</dd>`}
<dt>Models</dt><dd>${models === null ? "all models" : models.join(", ")}</dd>
<dt>Permissions</dt><dd>${permissions.length === 0 ? "None" : permissions.map((name) => html`<div>${PERMISSION_WORDS[name]}</div>`)}</dd>
</dl>`;
}

function personSection({ person: { handle, email }, formToken, base }: DevicePage): Html {
  return html`<div class="who"><span>Signed in as <strong>${handle}</strong>${email === null ? "" : html` <small>${email}</small>`}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken, `${base}/device`)}<button type="submit" class="small">Switch account</button></form></div>`;
}

function appSection({ app, clientAddress, createdAt, age }: DeviceAuthorization): Html {
  const rows = html`<dt>Requested from</dt><dd>${clientAddress || "an unknown address"}</dd>
<dt>Requested</dt><dd>${agoOf(age)} <small>(${moment(createdAt)})</small></dd>`;
  if (app === null) return html`<dl><dt>App</dt><dd><strong>Unverified app</strong>: it has not identified itself.</dd>${rows}</dl>`;
  return html`<dl><dt>App</dt><dd><bdi>${shownName(app.name)}</bdi></dd>
<dt>Developer</dt><dd>${ownerOf(app)}</dd>${rows}</dl>`;
}

function agoOf(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return "less than a minute ago";
  return minutes === 1 ? "a minute ago" : `${minutes} minutes ago`;
}

// Routes of the code, the request and the decision.

/** Anything but a code in the link is ignored. */
const linkQuery = z.object({ user_code: z.string().max(40).optional().catch(undefined) });
const codeForm = z.object({ user_code: userCodeText });
/** Denying needs no other fields. */
const decisionForm = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("approve"), ...codeForm.shape, ...grantFormFields }),
  z.object({ decision: z.literal("deny"), ...codeForm.shape }),
]);

type Needed = Pick<Services, "accounts" | "catalog" | "deviceAuthorizations">;

export function addDevicePages(route: Route, page: PageEndpoint, { accounts, catalog, deviceAuthorizations }: Needed): void {
  const frame = async (ctx: RequestContext, { formToken, base }: Omit<DevicePage, "person">): Promise<DevicePage> => ({
    person: await accounts.me(ctx),
    formToken,
    base,
  });
  const show = async (ctx: RequestContext, device: DeviceAuthorization, shown: DevicePage, refused?: Refused): Promise<Page> => {
    if (device.status !== "pending") return donePage(device, shown.base);
    const [{ balance }, models] = await Promise.all([accounts.balance(ctx), catalog.list(ctx, {})]);
    return confirmationPage({ ...shown, device, balance, models, ...(refused && { refused }) });
  };
  route("/device", {
    GET: page({
      query: linkQuery,
      isSignedIn: true,
      handler: async (ctx, { query, ...request }) => codePage(await frame(ctx, request), query.user_code ?? ""),
    }),
    POST: page({
      form: codeForm,
      isSignedIn: true,
      handler: async (ctx, { form, ...request }) =>
        show(ctx, await deviceAuthorizations.find(ctx, form.user_code), await frame(ctx, request)),
      onRefused: async (ctx, { error, fields, request }) => codePage(await frame(ctx, request), entered(fields), error),
    }),
  });
  route("/device/decision", {
    POST: page({
      form: decisionForm,
      isSignedIn: true,
      handler: async (ctx, { form, base }) => {
        if (form.decision === "deny") return donePage(await deviceAuthorizations.deny(ctx, { userCode: form.user_code }), base);
        return donePage(await deviceAuthorizations.approve(ctx, { userCode: form.user_code, ...toGrantChoice(form) }), base);
      },
      onRefused: async (ctx, { error, fields, request }) => {
        const shown = await frame(ctx, request);
        // Correctable errors, and repeated decisions (a page that is sent twice shows the first result).
        if (error.code === "BAD_REQUEST" || error.code === "CONFLICT" || error.code === "INSUFFICIENT_BALANCE") {
          const device = await deviceAuthorizations.find(ctx, entered(fields)).catch(() => null);
          if (device) return show(ctx, device, shown, { error, fields });
        }
        return codePage(shown, "", error);
      },
    }),
  });
}

function entered({ user_code }: FormFields): string {
  return typeof user_code === "string" ? user_code : "";
}
