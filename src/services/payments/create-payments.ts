/** Composes payments. */
import type { Logger } from "pino";
import type { RequestContext } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import type { PaymentsSetting, SalesSettings } from "../../lib/settings.js";
import { isLoopbackHostname } from "../../lib/urls.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Ledger } from "../../store/ledger.js";
import type { AccountSuspensions } from "../accounts/suspensions.js";
import type { Leases } from "../credits/leases.js";
import { SignedLinks } from "../integrations/signed-links.js";
import type { DeploymentSecrets } from "../secrets/deployment-secrets.js";
import { AutoTopUps } from "./auto-top-ups.js";
import { Billing } from "./billing.js";
import { TopUpBooking } from "./booking.js";
import { CreditWebhooks } from "./credit-webhooks.js";
import { checkoutLink, DevelopmentCheckout } from "./development-checkout.js";
import { Fees } from "./fees.js";
import { PaymentReports } from "./payment-reports.js";
import { Sales } from "./sales.js";
import { StripeProcessor } from "./stripe-processor.js";
import { TopUps } from "./top-ups.js";

export interface PaymentsParts {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly events: Events;
  readonly leases: Leases;
  readonly secrets: Pick<DeploymentSecrets, "signing">;
  readonly accountSuspensions: Pick<AccountSuspensions, "suspendByRule">;
  readonly clock: Clock;
  readonly log: Logger;
  /** The sign-in address, where the dashboard is. */
  readonly authUrl: () => string;
}

export interface PaymentSettings {
  readonly payments: PaymentsSetting;
  readonly sales: SalesSettings;
}

export function createPayments(
  { database, ledger, events, leases, secrets, accountSuspensions, clock, log, authUrl }: PaymentsParts,
  { payments, sales }: PaymentSettings,
) {
  const booking = new TopUpBooking({ database, ledger, leases, events, clock });
  const developmentCheckout = new DevelopmentCheckout({
    ...{ database, clock, isInUse: payments === "development" },
    links: new SignedLinks(secrets.signing("development checkouts"), checkoutLink),
    pageUrl: () => `${authUrl()}/checkout`,
    receiptUrl: () => `${authUrl()}/receipt`,
  });
  const stripe = sales.stripe === null ? null : new StripeProcessor({ database, settings: sales.stripe });
  const processor = payments === "stripe" ? stripe : payments === "development" ? developmentCheckout : null;
  const creditsUrl = (ctx: RequestContext | null) => atHostOf(ctx, `${authUrl()}/dashboard/credits`);
  const autoTopUps = new AutoTopUps({ database, booking, events, clock, log, processor, sales });
  const fees = new Fees({ database, ledger, clock, log, processors: stripe === null ? [] : [stripe] });
  const onDispute = async ({ id, accountId }: { readonly id: string; readonly accountId: string }) => {
    if (!sales.suspendsOnDispute) return;
    if (await accountSuspensions.suspendByRule(accountId, `The payment of top-up ${id} is disputed.`))
      log.warn({ accountId, topUpId: id }, "an account was suspended because of a disputed payment");
  };
  return {
    topUps: new TopUps({ database, booking, events, clock, processor, sales, creditsUrl }),
    sales: new Sales(database, clock),
    billing: new Billing({ processor, sales, creditsUrl }),
    developmentCheckout,
    autoTopUps,
    creditWebhooks: new CreditWebhooks({ database, booking, clock, sales }),
    paymentReports: new PaymentReports({
      ...{ database, booking, stripe, clock, log, onDispute },
      onUnpaid: (topUpId, reason) => autoTopUps.fail(topUpId, reason),
    }),
    fees,
    topUpBooking: booking,
    paymentWork: {
      start: () => {
        autoTopUps.start();
        fees.start();
      },
      close: async () => {
        await Promise.all([autoTopUps.close(), fees.close()]);
      },
    },
  };
}

/** On the loopback a person stays at the host where they are signed in: `localhost` and `127.0.0.1` have cookies of their own. */
function atHostOf(ctx: RequestContext | null, url: string): string {
  const page = new URL(url);
  const stated = ctx?.host;
  if (stated === undefined || !isLoopbackHostname(page.hostname) || !URL.canParse(`http://${stated}`)) return url;
  const { hostname, host } = new URL(`http://${stated}`);
  if (isLoopbackHostname(hostname)) page.host = host;
  return page.href;
}
