/** Connected apps and toolkits, as REST shows them (docs/spec/connected-apps.md). */
import type { ConnectedApp, Toolkit } from "../../services/integrations/broker.js";

export function toConnectedApp({ id, toolkit, name, description, logo, alias, status }: ConnectedApp) {
  return { id, toolkit, name, description, logo, alias, status };
}

export function toToolkit({ slug, name, description, logo }: Toolkit) {
  return { slug, name, description, logo };
}
