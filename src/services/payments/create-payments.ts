/** Composes payments. */
import type { Clock } from "../../lib/clock.js";
import type { PaymentsSetting } from "../../lib/settings.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Ledger } from "../../store/ledger.js";
import type { Leases } from "../credits/leases.js";
import { SignedLinks } from "../integrations/signed-links.js";
import type { DeploymentSecrets } from "../secrets/deployment-secrets.js";
import { checkoutLink, DevelopmentCheckout } from "./development-checkout.js";
import { TopUps } from "./top-ups.js";

export interface PaymentsParts {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly events: Events;
  readonly leases: Leases;
  readonly secrets: Pick<DeploymentSecrets, "signing">;
}

export function createPayments(
  { database, ledger, events, leases, secrets }: PaymentsParts,
  setting: PaymentsSetting,
  clock: Clock,
  pageUrl: () => string,
) {
  const isInUse = setting === "development";
  const links = new SignedLinks(secrets.signing("development checkouts"), checkoutLink);
  const developmentCheckout = new DevelopmentCheckout({ database, links, clock, pageUrl, isInUse });
  const topUps = new TopUps({ database, ledger, leases, events, clock, processor: isInUse ? developmentCheckout : null });
  return { topUps, developmentCheckout };
}
