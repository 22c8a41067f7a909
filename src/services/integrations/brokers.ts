/** The broker that the configuration names. */
import { type IntegrationsBroker, NO_BROKER } from "./broker.js";
import { HttpBroker, type IntegrationsSettings } from "./http-broker.js";

export function brokerOf(settings: IntegrationsSettings, development: IntegrationsBroker): IntegrationsBroker {
  switch (settings.kind) {
    case "development":
      return development;
    case "off":
      return NO_BROKER;
    case "http":
      return new HttpBroker(settings);
  }
}
