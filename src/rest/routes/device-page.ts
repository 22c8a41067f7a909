/** The device flow as a person sees it: the code, what asks, and the decision (docs/spec/authorization.md#device-flow). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { grantFormFields, toGrantChoice } from "../../services/api-keys/grant-terms.js";
import { type DeviceAuthorization, userCodeText } from "../../services/authorizations/device-authorizations.js";
import type { Services } from "../../services/services.js";
import type { Refused } from "../pages/decision-fields.js";
import { codePage, confirmationPage, type DevicePage, donePage } from "../pages/device.js";
import type { FormFields } from "../pages/form.js";
import type { Page } from "../pages/page.js";
import type { PageEndpoint } from "../pages/page-endpoint.js";
import type { Route } from "../route.js";

/** What the link that a device shows may hold; anything else is as good as nothing. */
const linkQuery = z.object({ user_code: z.string().max(40).optional().catch(undefined) });
const codeForm = z.object({ user_code: userCodeText });
/** Whoever denies need not have filled in the rest. */
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
    if (device.status !== "pending") return donePage(device);
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
      handler: async (ctx, { form }) => {
        if (form.decision === "deny") return donePage(await deviceAuthorizations.deny(ctx, { userCode: form.user_code }));
        return donePage(await deviceAuthorizations.approve(ctx, { userCode: form.user_code, ...toGrantChoice(form) }));
      },
      onRefused: async (ctx, { error, fields, request }) => {
        const shown = await frame(ctx, request);
        // What can be put right, and what this person has decided before: a page that is sent twice shows what came of it.
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
