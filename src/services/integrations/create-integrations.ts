/** Connected apps, with the broker that the operator chose. */

import type { Addresses } from "../../lib/base-url.js";
import type { Clock } from "../../lib/clock.js";
import type { Infrastructure } from "../composition/infrastructure.js";
import { connectionLink, DevelopmentBroker } from "./development-broker.js";
import { HttpBroker, type IntegrationsSettings } from "./http-broker.js";
import { callbackLink, Integrations } from "./integrations.js";
import { NO_BROKER } from "./no-broker.js";
import { SignedLinks } from "./signed-links.js";

export interface IntegrationServices {
  readonly integrations: Integrations;
  readonly developmentBroker: DevelopmentBroker;
}

/** `addresses` is asked for each connection: a port that the system chooses is known by then. */
export function createIntegrations(
  { database, deriveSecret }: Pick<Infrastructure, "database" | "deriveSecret">,
  settings: IntegrationsSettings,
  clock: Clock,
  addresses: () => Addresses,
): IntegrationServices {
  const pageUrl = (page: string) => () => `${addresses().authUrl}/integrations/${page}`;
  const developmentBroker = new DevelopmentBroker({
    database,
    links: new SignedLinks(deriveSecret("development connections"), connectionLink),
    clock,
    pageUrl: pageUrl("connect"),
    isInUse: settings.kind === "development",
  });
  const integrations = new Integrations({
    broker: brokerOf(settings, developmentBroker),
    links: new SignedLinks(deriveSecret("returns of connections"), callbackLink),
    database,
    clock,
    callbackPageUrl: pageUrl("callback"),
  });
  return { integrations, developmentBroker };
}

function brokerOf(settings: IntegrationsSettings, development: DevelopmentBroker) {
  switch (settings.kind) {
    case "development":
      return development;
    case "off":
      return NO_BROKER;
    case "http":
      return new HttpBroker(settings);
  }
}
