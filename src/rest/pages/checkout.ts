/** The page of the development checkout (docs/spec/top-ups.md#development-checkout). */
import * as z from "zod";
import { formatNanocredits } from "../../lib/money.js";
import { SIGNED_LINK_CHARS_MAX } from "../../services/integrations/limits.js";
import type { CheckoutView } from "../../services/payments/development-checkout.js";
import { formatCents } from "../../services/payments/money.js";
import type { Services } from "../../services/services.js";
import type { Route } from "../route.js";
import { NO_DEFAULT } from "./decision-fields.js";
import { html } from "./html.js";
import type { Page } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { hiddenFields } from "./sign-in.js";
import { moment } from "./words.js";

interface CheckoutPage {
  readonly view: CheckoutView;
  readonly token: string;
  readonly formToken: string;
  readonly base: string;
}

const CLOSED = {
  paid: "This checkout is paid.",
  cancelled: "This checkout was cancelled.",
  open: "This checkout has expired. Start the purchase again.",
} as const;

function checkoutPage({ view: { topUp, handle, isOpen }, token, formToken, base }: CheckoutPage): Page {
  const credits = formatNanocredits(topUp.nanocredits);
  const title = isOpen ? `Buy ${credits} credits?` : `${credits} credits`;
  const body = html`<h1>${title}</h1>
<dl><dt>Account</dt><dd>${handle}</dd><dt>Price</dt><dd>${formatCents(topUp.amountCents)} ${topUp.currency.toUpperCase()}</dd></dl>
${
  isOpen
    ? html`<p class="note"><strong>This is the development checkout.</strong> No money moves: Pay adds the credits at once.</p>
<form method="post" action="${base}/checkout">
${hiddenFields(formToken)}
<input type="hidden" name="token" value="${token}">
${NO_DEFAULT}
<div class="buttons">
<button type="submit" name="decision" value="pay" class="primary">Pay</button>
<button type="submit" name="decision" value="cancel" formnovalidate>Cancel</button>
</div>
</form>
<p class="soft">This checkout expires on ${moment(topUp.expiresAt)}.</p>`
    : html`<p role="status">${CLOSED[topUp.status]}</p>`
}
<p><a href="${base}/dashboard/credits">Back to your credits</a></p>`;
  return { title, body };
}

interface ReceiptPage {
  readonly receipt: Awaited<ReturnType<Services["developmentCheckout"]["receipt"]>>;
  readonly base: string;
}

function receiptPage({ receipt: { topUp, handle, number }, base }: ReceiptPage): Page {
  const amount = (cents: bigint) => `${formatCents(cents)} ${topUp.currency.toUpperCase()}`;
  const body = html`<h1>Receipt ${number}</h1>
<dl><dt>Account</dt><dd>${handle}</dd><dt>Paid</dt><dd>${moment(topUp.paidAt ?? topUp.createdAt)}</dd>
<dt>Credits</dt><dd>${formatNanocredits(topUp.nanocredits)}</dd><dt>Total</dt><dd>${amount(topUp.amountCents)}</dd>
${topUp.refundedCents > 0n ? html`<dt>Refunded</dt><dd>${amount(topUp.refundedCents)}</dd>` : ""}</dl>
<p class="note">This is a receipt of the development checkout. No money moved.</p>
<p><a href="${base}/dashboard/credits">Back to your credits</a></p>`;
  return { title: `Receipt ${number}`, body };
}

/** A malformed link is treated as a wrong one. */
const link = z.string().max(SIGNED_LINK_CHARS_MAX).catch("");
const checkoutQuery = z.object({ token: link });
const decisionForm = z.object({ decision: z.enum(["pay", "cancel"]), token: link });

type Needed = Pick<Services, "developmentCheckout" | "topUps">;

export function addCheckoutPage(route: Route, page: PageEndpoint, { developmentCheckout, topUps }: Needed): void {
  route("/receipt", {
    GET: page({
      query: checkoutQuery,
      handler: async (_ctx, { query: { token }, base }) => receiptPage({ receipt: await developmentCheckout.receipt(token), base }),
    }),
  });
  route("/checkout", {
    GET: page({
      query: checkoutQuery,
      handler: async (_ctx, { query: { token }, formToken, base }) =>
        checkoutPage({ view: await developmentCheckout.view(token), token, formToken, base }),
    }),
    POST: page({
      form: decisionForm,
      handler: async (_ctx, { form: { decision, token }, base }) => {
        await developmentCheckout.decide(topUps, token, decision === "pay");
        return { redirectTo: `${base}/checkout?token=${token}` };
      },
    }),
  });
}
