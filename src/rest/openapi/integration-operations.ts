/** What the operations about connected apps are called and do; a part of `operations.ts`. */
import type { Operation } from "./operation.js";

const BROKER_ERRORS = ["502", "504"] as const;

export const INTEGRATION_OPERATIONS = {
  "GET /account/integrations": {
    id: "listIntegrations",
    tag: "Connected apps",
    summary: "The account's connections to outside apps.",
    answer: "ConnectedAppList",
    errors: BROKER_ERRORS,
  },
  "POST /account/integrations": {
    id: "connectIntegration",
    tag: "Connected apps",
    summary: "Begins a connection.",
    description: "Send a person's browser to `url`, where they sign in to the app and approve; then the connection is `active`.",
    answer: "NewConnection",
    errors: ["409", ...BROKER_ERRORS],
  },
  "GET /account/integrations/toolkits": {
    id: "listToolkits",
    tag: "Connected apps",
    summary: "What can be connected.",
    answer: "ToolkitList",
    errors: BROKER_ERRORS,
  },
  "DELETE /account/integrations/{integration}": {
    id: "deleteIntegration",
    tag: "Connected apps",
    summary: "Ends a connection.",
    hasNoContent: true,
    errors: BROKER_ERRORS,
  },
  "GET /integrations/connect": { id: "showConnection", tag: "Connected apps", summary: "The page of a connection.", isHidden: true },
  "POST /integrations/connect": { id: "submitConnection", tag: "Connected apps", summary: "Allows or refuses it.", isHidden: true },
  "GET /integrations/callback": { id: "showConnectionOutcome", tag: "Connected apps", summary: "What became of it.", isHidden: true },
} as const satisfies Readonly<Record<string, Operation>>;
