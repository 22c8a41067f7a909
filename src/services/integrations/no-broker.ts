/** `INTEGRATIONS_BROKER_URL=off`: nothing can be connected, and nothing is (docs/spec/connected-apps.md#broker). */
import { type AppError, serviceUnavailable } from "../../errors.js";
import type { IntegrationsBroker } from "./broker.js";

export const NO_BROKER: IntegrationsBroker = {
  listToolkits: async () => {
    throw switchedOff();
  },
  listConnections: async () => [],
  connect: async () => {
    throw switchedOff();
  },
  disconnect: async () => false,
  close: async () => undefined,
};

function switchedOff(): AppError {
  return serviceUnavailable("Connected apps are switched off on this gateway.", { retryAfterSeconds: 60 * 60 });
}
