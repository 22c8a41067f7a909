/** Every operation on an account, on both faces, and whom it is for. */
import type { AccountPermission } from "../../../src/context.js";

/**
 * everyone: anonymous callers, too. key: any key, no session. any: every authenticated caller. manager: a session, or a
 * secret key that holds `keys`. secret: a session, or any secret key. Else the permission, which a session always has.
 */
export type Needs = "everyone" | "key" | "any" | "secret" | "manager" | "session" | "operator" | Exclude<AccountPermission, "keys">;

export interface Operation {
  readonly needs: Needs;
  /**
   * The kind of object that the operation changes or reads, when it is one of the account's: other accounts get
   * NOT_FOUND.
   */
  readonly target?: Target;
  /** The code that a permitted caller gets: the input is not good, and not tested here. */
  readonly refusal?: "BAD_REQUEST" | "NOT_FOUND" | "CONFLICT";
  readonly rest?: {
    readonly method: "GET" | "POST" | "PATCH" | "DELETE";
    /** Below the prefix of account routes. `:id` is the target's; without one it is nothing's. */
    readonly path: string;
    readonly body?: unknown;
  };
  readonly graphql?: {
    /** As the contract names it: `Query.me`, `Account.balance`, `Mutation.revokeApiKey`. */
    readonly field: string;
    readonly document: string;
    /** `$id` stands for the target's. */
    readonly input?: Readonly<Record<string, unknown>>;
  };
}

/** What a target is made of. */
export type Target =
  | "agent"
  | "model"
  | "connection"
  | "key"
  | "app"
  | "session"
  | "webhook"
  | "delivery"
  | "preset"
  | "vendorKey"
  | "usageLimit";

export const NOBODY = "00000000-0000-4000-8000-000000000000";

const me = (selection: string) => `{ me { ${selection} } }`;
const mutation = (name: string, selection: string) =>
  `mutation($input: ${name[0]?.toUpperCase()}${name.slice(1)}Input!) { ${name}(input: $input) { ${selection} } }`;

export const OPERATIONS: readonly Operation[] = [
  { needs: "any", graphql: { field: "Query.me", document: me("id handle") } },
  {
    needs: "profile",
    rest: { method: "GET", path: "/profile" },
    graphql: {
      field: "Account.email",
      document: me("name email isEmailVerified githubUsername tier createdAt nextResetAt suspendedAt suspensionReason"),
    },
  },
  {
    needs: "session",
    rest: { method: "PATCH", path: "/profile", body: { name: "Somebody" } },
    graphql: { field: "Mutation.updateProfile", document: mutation("updateProfile", "account { id }"), input: { name: "Somebody" } },
  },
  {
    needs: "session",
    rest: { method: "GET", path: "/sessions" },
    graphql: { field: "Account.sessions", document: me("sessions(first: 1) { nodes { id } }") },
  },
  {
    needs: "session",
    target: "session",
    rest: { method: "DELETE", path: "/sessions/:id" },
    graphql: { field: "Mutation.revokeSession", document: mutation("revokeSession", "session { id }"), input: { id: "$id" } },
  },
  {
    needs: "session",
    rest: { method: "DELETE", path: "/sessions" },
    graphql: { field: "Mutation.revokeOtherSessions", document: mutation("revokeOtherSessions", "sessions { id }"), input: {} },
  },
  { needs: "session", graphql: { field: "Account.export", document: me("export(section: PROFILE) { items endCursor }") } },
  { needs: "session", graphql: { field: "Account.deletionPreview", document: me("deletionPreview { obstacle }") } },
  {
    needs: "session",
    refusal: "BAD_REQUEST",
    graphql: {
      field: "Mutation.deleteAccount",
      document: mutation("deleteAccount", "deletedId"),
      input: { confirmHandle: "somebody-else" },
    },
  },
  {
    needs: "session",
    refusal: "BAD_REQUEST",
    graphql: {
      field: "Mutation.createAuthorizationRequest",
      document: mutation("createAuthorizationRequest", "authorizationRequest { id }"),
      input: { redirectUrl: "javascript:alert(1)" },
    },
  },
  {
    needs: "session",
    refusal: "NOT_FOUND",
    graphql: { field: "Account.authorizationRequest", document: me(`authorizationRequest(id: "${NOBODY}") { id }`) },
  },
  {
    needs: "session",
    refusal: "NOT_FOUND",
    graphql: { field: "Mutation.approveAuthorization", document: mutation("approveAuthorization", "redirectTo"), input: { id: NOBODY } },
  },
  {
    needs: "session",
    refusal: "NOT_FOUND",
    graphql: { field: "Mutation.denyAuthorization", document: mutation("denyAuthorization", "redirectTo"), input: { id: NOBODY } },
  },
  {
    needs: "balance",
    rest: { method: "GET", path: "/balance" },
    graphql: { field: "Account.balance", document: me("balance { available }") },
  },
  {
    needs: "balance",
    rest: { method: "GET", path: "/balance/threshold" },
    graphql: { field: "Account.lowBalance", document: me("lowBalance { threshold }") },
  },
  {
    needs: "balance",
    graphql: { field: "Account.creditGrants", document: me("creditGrants { totalCount }") },
  },
  {
    needs: "balance",
    rest: { method: "GET", path: "/ledger" },
    graphql: { field: "Account.ledger", document: me("ledger { totalCount }") },
  },
  {
    needs: "balance",
    rest: { method: "GET", path: "/top-ups" },
    graphql: { field: "Account.topUps", document: me("topUps { totalCount }") },
  },
  { needs: "balance", refusal: "NOT_FOUND", rest: { method: "GET", path: "/top-ups/:id" } },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/top-ups", body: { credits: 0 } },
    graphql: { field: "Mutation.createCheckout", document: mutation("createCheckout", "url"), input: { credits: "0" } },
  },
  {
    needs: "balance",
    rest: { method: "GET", path: "/earnings" },
    graphql: { field: "Account.earnings", document: me("earnings { pending }") },
  },
  { needs: "balance", rest: { method: "GET", path: "/earnings?format=csv" } },
  { needs: "balance", rest: { method: "GET", path: "/earnings/shares" } },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/earnings/convert", body: { credits: 0 } },
    graphql: { field: "Mutation.convertEarnings", document: mutation("convertEarnings", "converted"), input: { credits: "0" } },
  },
  {
    needs: "manager",
    refusal: "NOT_FOUND",
    rest: { method: "PATCH", path: "/apps/:id/margin", body: { marginPercent: 0 } },
    graphql: {
      field: "Mutation.setAppMargin",
      document: mutation("setAppMargin", "marginPercent"),
      input: { appId: NOBODY, marginPercent: 0 },
    },
  },
  { needs: "everyone", graphql: { field: "Query.areCreditsSold", document: "{ areCreditsSold }" } },
  { needs: "everyone", graphql: { field: "Query.creditSales", document: "{ creditSales { currency packs } }" } },
  {
    needs: "balance",
    rest: { method: "GET", path: "/auto-top-up" },
    graphql: { field: "Account.autoTopUp", document: me("autoTopUp { isEnabled }") },
  },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "PATCH", path: "/auto-top-up", body: { isEnabled: true, threshold: 1, amount: 0, monthlyCap: 1 } },
    graphql: {
      field: "Mutation.updateAutoTopUp",
      document: mutation("updateAutoTopUp", "autoTopUp { isEnabled }"),
      input: { isEnabled: true, threshold: "1", amount: "0", monthlyCap: "1" },
    },
  },
  {
    needs: "balance",
    rest: { method: "GET", path: "/invoices" },
    graphql: { field: "Account.invoices", document: me("invoices { number }") },
  },
  {
    needs: "manager",
    refusal: "CONFLICT",
    rest: { method: "POST", path: "/billing-portal" },
    graphql: { field: "Mutation.createBillingPortal", document: "mutation { createBillingPortal(input: {}) { url } }" },
  },
  { needs: "profile", graphql: { field: "Account.tierRefill", document: me("tierRefill { credits period }") } },
  { needs: "everyone", graphql: { field: "Query.topUp", document: "{ topUp { text url } }" } },
  {
    needs: "manager",
    rest: { method: "PATCH", path: "/balance/threshold", body: { threshold: 1 } },
    graphql: {
      field: "Mutation.setLowBalanceThreshold",
      document: mutation("setLowBalanceThreshold", "lowBalance { threshold }"),
      input: { threshold: "1" },
    },
  },
  {
    needs: "usage",
    rest: { method: "GET", path: "/usage" },
    graphql: { field: "Account.usage", document: me("usage(first: 1) { edges { node { id } } }") },
  },
  { needs: "usage", rest: { method: "GET", path: "/usage?format=csv" } },
  {
    needs: "usage",
    rest: { method: "GET", path: "/usage/daily" },
    graphql: { field: "Account.usageDaily", document: me("usageDaily { asOf }") },
  },
  {
    needs: "usage",
    target: "app",
    rest: { method: "GET", path: "/apps/:id/usage/daily" },
  },
  {
    needs: "usage",
    target: "app",
    graphql: { field: "Account.appUsage", document: me('appUsage(appKeyId: "$id") { totalRequests }') },
  },
  {
    needs: "usage",
    refusal: "NOT_FOUND",
    graphql: { field: "Account.usageRecord", document: me(`usageRecord(id: "${NOBODY}") { id }`) },
  },
  {
    needs: "usage",
    rest: { method: "GET", path: "/requests" },
    graphql: { field: "Account.requestLog", document: me("requestLog(first: 1) { edges { node { id } } }") },
  },
  {
    needs: "usage",
    refusal: "NOT_FOUND",
    rest: { method: "GET", path: "/requests/:id" },
    graphql: { field: "Account.loggedRequest", document: me(`loggedRequest(id: "${NOBODY}") { id }`) },
  },
  { needs: "usage", graphql: { field: "Account.usageSummary", document: me("usageSummary { requests }") } },
  { needs: "usage", graphql: { field: "Account.jobs", document: me("jobs(first: 1) { edges { node { id } } }") } },
  { needs: "key", rest: { method: "GET", path: "/key" } },
  { needs: "any", graphql: { field: "Account.currentApiKey", document: me("currentApiKey { id name permissions }") } },
  { needs: "key", rest: { method: "GET", path: "/key/usage" } },
  {
    needs: "usage",
    rest: { method: "GET", path: "/alerts" },
    graphql: { field: "Account.alerts", document: me("alerts { totalCount }") },
  },
  {
    needs: "usage",
    rest: { method: "GET", path: "/alert-rules" },
    graphql: { field: "Account.alertRules", document: me("alertRules { kind }") },
  },
  {
    needs: "usage",
    rest: { method: "GET", path: "/alert-silences" },
    graphql: { field: "Account.alertSilences", document: me("alertSilences { kind }") },
  },
  {
    needs: "manager",
    refusal: "NOT_FOUND",
    rest: { method: "POST", path: "/alerts/:id/acknowledge" },
    graphql: { field: "Mutation.acknowledgeAlert", document: mutation("acknowledgeAlert", "alert { id }"), input: { id: NOBODY } },
  },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "PATCH", path: "/alert-rules/:id", body: { days: 1 } },
    graphql: {
      field: "Mutation.updateAlertRule",
      document: mutation("updateAlertRule", "alertRule { kind }"),
      input: { kind: "TOP_UP_FAILED", days: 1 },
    },
  },
  {
    needs: "manager",
    rest: { method: "POST", path: "/alert-silences", body: { kind: "key_unused" } },
    graphql: {
      field: "Mutation.silenceAlerts",
      document: mutation("silenceAlerts", "alertSilence { kind }"),
      input: { kind: "KEY_UNUSED" },
    },
  },
  {
    needs: "manager",
    refusal: "NOT_FOUND",
    rest: { method: "POST", path: "/alert-silences/end", body: { kind: "top_up_failed" } },
    graphql: {
      field: "Mutation.unsilenceAlerts",
      document: mutation("unsilenceAlerts", "kind"),
      input: { kind: "TOP_UP_FAILED" },
    },
  },
  {
    needs: "manager",
    rest: { method: "GET", path: "/keys" },
    graphql: { field: "Account.apiKeys", document: me("apiKeys(first: 1) { edges { node { id } } }") },
  },
  {
    needs: "manager",
    rest: { method: "POST", path: "/keys", body: { name: "made" } },
    graphql: { field: "Mutation.createApiKey", document: mutation("createApiKey", "apiKey { id }"), input: { name: "made" } },
  },
  { needs: "manager", target: "key", rest: { method: "GET", path: "/keys/:id" } },
  {
    needs: "manager",
    target: "key",
    rest: { method: "PATCH", path: "/keys/:id", body: { name: "renamed" } },
    graphql: { field: "Mutation.updateApiKey", document: mutation("updateApiKey", "apiKey { id }"), input: { id: "$id", name: "renamed" } },
  },
  {
    needs: "manager",
    target: "key",
    rest: { method: "DELETE", path: "/keys/:id" },
    graphql: { field: "Mutation.revokeApiKey", document: mutation("revokeApiKey", "apiKey { id }"), input: { id: "$id" } },
  },
  {
    needs: "manager",
    rest: { method: "GET", path: "/webhooks" },
  },
  {
    needs: "manager",
    graphql: {
      field: "Account.webhookEndpoints",
      document: me("webhookEndpoints(first: 1) { nodes { id deliveries(first: 1) { nodes { id } } } }"),
    },
  },
  { needs: "secret", graphql: { field: "Account.runs", document: me("runs(first: 1) { nodes { id below { id } } }") } },
  {
    needs: "secret",
    refusal: "BAD_REQUEST",
    graphql: { field: "Mutation.createRun", document: mutation("createRun", "run { id }"), input: { maxCost: "0" } },
  },
  {
    needs: "secret",
    refusal: "NOT_FOUND",
    graphql: { field: "Query.run", document: `{ run(id: "${NOBODY}") { id } }` },
  },
  {
    needs: "secret",
    refusal: "NOT_FOUND",
    graphql: { field: "Mutation.endRun", document: mutation("endRun", "run { id }"), input: { id: NOBODY } },
  },
  {
    needs: "secret",
    refusal: "NOT_FOUND",
    graphql: { field: "Mutation.approveRun", document: mutation("approveRun", "run { id }"), input: { id: NOBODY, amount: "1" } },
  },
  { needs: "manager", graphql: { field: "Account.presets", document: me("presets(first: 1) { nodes { id name } }") } },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    graphql: { field: "Mutation.createPreset", document: mutation("createPreset", "preset { id }"), input: { name: "No" } },
  },
  {
    needs: "manager",
    target: "preset",
    graphql: {
      field: "Mutation.updatePreset",
      document: mutation("updatePreset", "preset { id }"),
      input: { id: "$id", systemPrompt: "Be brief." },
    },
  },
  {
    needs: "manager",
    target: "preset",
    graphql: { field: "Mutation.deletePreset", document: mutation("deletePreset", "deletedId"), input: { id: "$id" } },
  },
  { needs: "manager", rest: { method: "GET", path: "/vendor-keys" } },
  { needs: "manager", graphql: { field: "Account.vendorKeys", document: me("vendorKeys(first: 1) { nodes { id name } }") } },
  { needs: "manager", graphql: { field: "Account.vendorKeyTerms", document: me("vendorKeyTerms { vendors feePercent }") } },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/vendor-keys", body: { vendor: "none", secret: "sk-x" } },
    graphql: {
      field: "Mutation.createVendorKey",
      document: mutation("createVendorKey", "vendorKey { id }"),
      input: { vendor: "none", secret: "sk-x" },
    },
  },
  { needs: "manager", target: "vendorKey", rest: { method: "GET", path: "/vendor-keys/:id" } },
  {
    needs: "manager",
    target: "vendorKey",
    rest: { method: "PATCH", path: "/vendor-keys/:id", body: { enabled: false } },
    graphql: {
      field: "Mutation.updateVendorKey",
      document: mutation("updateVendorKey", "vendorKey { id }"),
      input: { id: "$id", enabled: false },
    },
  },
  {
    needs: "manager",
    target: "vendorKey",
    rest: { method: "DELETE", path: "/vendor-keys/:id" },
    graphql: { field: "Mutation.deleteVendorKey", document: mutation("deleteVendorKey", "deletedId"), input: { id: "$id" } },
  },
  { needs: "manager", rest: { method: "GET", path: "/usage-limits" } },
  { needs: "operator", graphql: { field: "Query.modelLimits", document: "{ modelLimits(first: 1) { nodes { id amount } } }" } },
  { needs: "manager", graphql: { field: "Account.usageLimits", document: me("usageLimits(first: 1) { nodes { id amount } }") } },
  {
    needs: "manager",
    refusal: "NOT_FOUND",
    rest: { method: "POST", path: "/usage-limits", body: { apiKeyId: NOBODY, metric: "requests", amount: 1, minutes: 1 } },
    graphql: {
      field: "Mutation.createUsageLimit",
      document: mutation("createUsageLimit", "usageLimit { id }"),
      input: { apiKeyId: NOBODY, metric: "REQUESTS", amount: "1", minutes: 1 },
    },
  },
  { needs: "manager", target: "usageLimit", rest: { method: "GET", path: "/usage-limits/:id" } },
  {
    needs: "manager",
    target: "usageLimit",
    rest: { method: "PATCH", path: "/usage-limits/:id", body: { amount: 2 } },
    graphql: {
      field: "Mutation.updateUsageLimit",
      document: mutation("updateUsageLimit", "usageLimit { id }"),
      input: { id: "$id", amount: "2" },
    },
  },
  {
    needs: "manager",
    target: "usageLimit",
    rest: { method: "DELETE", path: "/usage-limits/:id" },
    graphql: { field: "Mutation.deleteUsageLimit", document: mutation("deleteUsageLimit", "deletedId"), input: { id: "$id" } },
  },
  // The host is refused after the caller has been let in.
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/webhooks", body: { url: "https://127.0.0.1", events: ["balance.low"] } },
  },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    graphql: {
      field: "Mutation.createWebhookEndpoint",
      document: mutation("createWebhookEndpoint", "secret"),
      input: { url: "https://127.0.0.1", events: ["BALANCE_LOW"] },
    },
  },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/my-models/test", body: { api: "responses", url: "https://127.0.0.1", upstreamModel: "m" } },
    graphql: {
      field: "Mutation.testCommunityModel",
      document: mutation("testCommunityModel", "test { isOk }"),
      input: { api: "RESPONSES", url: "https://127.0.0.1", upstreamModel: "m" },
    },
  },
  {
    needs: "manager",
    target: "webhook",
    rest: { method: "PATCH", path: "/webhooks/:id", body: { isEnabled: false } },
    graphql: {
      field: "Mutation.updateWebhookEndpoint",
      document: mutation("updateWebhookEndpoint", "webhookEndpoint { id }"),
      input: { id: "$id", isEnabled: false },
    },
  },
  {
    needs: "manager",
    target: "webhook",
    rest: { method: "DELETE", path: "/webhooks/:id" },
    graphql: { field: "Mutation.deleteWebhookEndpoint", document: mutation("deleteWebhookEndpoint", "deletedId"), input: { id: "$id" } },
  },
  {
    needs: "manager",
    target: "webhook",
    rest: { method: "POST", path: "/webhooks/:id/rotate-secret" },
    graphql: { field: "Mutation.rotateWebhookSecret", document: mutation("rotateWebhookSecret", "secret"), input: { id: "$id" } },
  },
  {
    needs: "manager",
    target: "webhook",
    rest: { method: "POST", path: "/webhooks/:id/test" },
    graphql: {
      field: "Mutation.sendTestWebhook",
      document: mutation("sendTestWebhook", "webhookDelivery { id }"),
      input: { endpointId: "$id" },
    },
  },
  {
    needs: "manager",
    target: "webhook",
    rest: { method: "GET", path: "/webhooks/:id/deliveries" },
  },
  {
    needs: "manager",
    target: "delivery",
    rest: { method: "POST", path: "/webhooks/:id/deliveries/:id/redeliver" },
    graphql: {
      field: "Mutation.redeliverWebhook",
      document: mutation("redeliverWebhook", "webhookDelivery { id }"),
      input: { endpointId: "$id", deliveryId: "$id" },
    },
  },
  {
    needs: "manager",
    rest: { method: "GET", path: "/agents" },
    graphql: { field: "Account.agents", document: me("agents(first: 1) { edges { node { id } } }") },
  },
  // There is no such model.
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/agents", body: { name: "a", title: "a", systemPrompt: "a", baseModel: "none" } },
    graphql: {
      field: "Mutation.createPromptAgent",
      document: mutation("createPromptAgent", "agent { id }"),
      input: { name: "a", title: "a", systemPrompt: "a", baseModelId: "none" },
    },
  },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    graphql: {
      field: "Mutation.createCodeAgent",
      document: mutation("createCodeAgent", "agent { id }"),
      input: { repository: "https://127.0.0.1/a.git" },
    },
  },
  {
    needs: "manager",
    target: "agent",
    rest: { method: "GET", path: "/agents/:id" },
  },
  {
    needs: "manager",
    target: "agent",
    graphql: { field: "Account.agent", document: me('agent(id: "$id") { id }') },
  },
  {
    needs: "manager",
    target: "agent",
    rest: { method: "PATCH", path: "/agents/:id", body: { title: "Changed" } },
    graphql: { field: "Mutation.updateAgent", document: mutation("updateAgent", "agent { id }"), input: { id: "$id", title: "Changed" } },
  },
  {
    needs: "manager",
    target: "agent",
    rest: { method: "DELETE", path: "/agents/:id" },
    graphql: { field: "Mutation.deleteAgent", document: mutation("deleteAgent", "agent { id }"), input: { id: "$id" } },
  },
  {
    needs: "manager",
    rest: { method: "GET", path: "/my-models" },
    graphql: {
      field: "Account.communityModels",
      document: me("communityModels(first: 1) { edges { node { id } } } communityModelProvider { name }"),
    },
  },
  // The upstream is refused after the caller has been let in.
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: {
      method: "POST",
      path: "/my-models",
      body: { name: "a", title: "a", bearerToken: "a", api: "responses", url: "https://10.0.0.1" },
    },
    graphql: {
      field: "Mutation.createCommunityModel",
      document: mutation("createCommunityModel", "communityModel { id }"),
      input: { name: "a", title: "a", bearerToken: "a", api: "RESPONSES", url: "https://10.0.0.1" },
    },
  },
  {
    needs: "manager",
    refusal: "BAD_REQUEST",
    rest: {
      method: "POST",
      path: "/my-models/endpoint-agents",
      body: { name: "a", title: "a", api: "responses", url: "https://10.0.0.1" },
    },
    graphql: {
      field: "Mutation.createEndpointAgent",
      document: mutation("createEndpointAgent", "agent { id }"),
      input: { name: "a", title: "a", api: "RESPONSES", url: "https://10.0.0.1" },
    },
  },
  {
    needs: "manager",
    target: "model",
    rest: { method: "GET", path: "/my-models/:id" },
  },
  {
    needs: "manager",
    target: "model",
    graphql: { field: "Account.communityModel", document: me('communityModel(id: "$id") { id }') },
  },
  {
    needs: "manager",
    target: "model",
    rest: { method: "PATCH", path: "/my-models/:id", body: { title: "Changed" } },
    graphql: {
      field: "Mutation.updateCommunityModel",
      document: mutation("updateCommunityModel", "communityModel { id }"),
      input: { id: "$id", title: "Changed" },
    },
  },
  { needs: "manager", target: "model", rest: { method: "POST", path: "/my-models/:id/update", body: { title: "Changed" } } },
  {
    needs: "manager",
    target: "model",
    rest: { method: "GET", path: "/my-models/:id/fallback-candidates" },
  },
  {
    needs: "manager",
    target: "model",
    rest: { method: "DELETE", path: "/my-models/:id" },
    graphql: {
      field: "Mutation.deleteCommunityModel",
      document: mutation("deleteCommunityModel", "communityModel { id }"),
      input: { id: "$id" },
    },
  },
  // Open to hosts of code; there is no such agent.
  {
    needs: "everyone",
    refusal: "NOT_FOUND",
    rest: { method: "POST", path: "/agents/:id/sync" },
    graphql: { field: "Mutation.syncAgent", document: mutation("syncAgent", "isUpdated"), input: { id: NOBODY } },
  },
  {
    needs: "manager",
    rest: { method: "GET", path: "/integrations" },
    graphql: { field: "Account.integrations", document: me("integrations { id }") },
  },
  {
    needs: "manager",
    rest: { method: "POST", path: "/integrations", body: { toolkit: "notes" } },
    graphql: {
      field: "Mutation.connectIntegration",
      document: mutation("connectIntegration", "integrationId"),
      input: { toolkit: "notes" },
    },
  },
  {
    needs: "manager",
    rest: { method: "GET", path: "/integrations/toolkits" },
    graphql: { field: "Query.integrationToolkits", document: "{ integrationToolkits { slug } }" },
  },
  {
    needs: "manager",
    target: "connection",
    rest: { method: "DELETE", path: "/integrations/:id" },
    graphql: { field: "Mutation.deleteIntegration", document: mutation("deleteIntegration", "integration { id }"), input: { id: "$id" } },
  },
  { needs: "manager", graphql: { field: "Query.mcpServers", document: "{ mcpServers }" } },
  { needs: "operator", graphql: { field: "Query.requestLog", document: "{ requestLog(first: 1) { edges { node { id } } } }" } },
  { needs: "operator", graphql: { field: "Query.loggedRequest", document: `{ loggedRequest(id: "${NOBODY}") { id } }` } },
  { needs: "operator", graphql: { field: "Query.accounts", document: "{ accounts(first: 1) { edges { node { id } } } }" } },
  { needs: "operator", graphql: { field: "Query.account", document: `{ account(id: "${NOBODY}") { id } }` } },
  {
    needs: "operator",
    graphql: { field: "Mutation.setTier", document: mutation("setTier", "account { id }"), input: { accountId: NOBODY, tier: "pro" } },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.createAccount", document: mutation("createAccount", "password"), input: { email: "nobody" } },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.setPublisher",
      document: mutation("setPublisher", "account { id }"),
      input: { accountId: NOBODY, isPublisher: true },
    },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.setOperator",
      document: mutation("setOperator", "account { id }"),
      input: { accountId: NOBODY, isOperator: true },
    },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.suspendAccount",
      document: mutation("suspendAccount", "account { id }"),
      input: { accountId: NOBODY, reason: "A leaver." },
    },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.restoreAccount", document: mutation("restoreAccount", "account { id }"), input: { accountId: NOBODY } },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.revokeAnyApiKey", document: mutation("revokeAnyApiKey", "account { id }"), input: { apiKeyId: NOBODY } },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.endSessions", document: mutation("endSessions", "ended"), input: { accountId: NOBODY } },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.createPasswordLink", document: mutation("createPasswordLink", "url"), input: { accountId: NOBODY } },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.refundTopUp",
      document: mutation("refundTopUp", "topUp { id }"),
      input: { topUpId: NOBODY },
    },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.withdrawCredits",
      document: mutation("withdrawCredits", "credits"),
      input: { accountId: NOBODY, bucket: "PACK", credits: "1" },
    },
  },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/earnings" },
    graphql: { field: "Query.owedEarnings", document: "{ owedEarnings { handle } }" },
  },
  { needs: "operator", rest: { method: "GET", path: "/operator/earnings?format=csv" } },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/books" },
    graphql: { field: "Query.trialBalance", document: "{ trialBalance { debit } }" },
  },
  { needs: "operator", rest: { method: "GET", path: "/operator/books?format=csv" } },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.sellCredits",
      document: mutation("sellCredits", "account { id }"),
      input: { accountId: NOBODY, bucket: "PACK", credits: "1" },
    },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.recordPayment",
      document: mutation("recordPayment", "account { id }"),
      input: { accountId: NOBODY, credits: "1" },
    },
  },
  { needs: "operator", graphql: { field: "Query.earningFlags", document: "{ earningFlags { handle } }" } },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.recordPayout",
      document: mutation("recordPayout", "paidOut"),
      input: { accountId: NOBODY, credits: "1" },
    },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.reverseEarnings", document: mutation("reverseEarnings", "reversed"), input: { payerId: NOBODY } },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.linkAccounts", document: mutation("linkAccounts", "linked"), input: { accountIds: [NOBODY, NOBODY] } },
  },
  {
    needs: "operator",
    graphql: { field: "Mutation.unlinkAccount", document: mutation("unlinkAccount", "accountId"), input: { accountId: NOBODY } },
  },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/audit" },
    graphql: { field: "Query.auditLog", document: "{ auditLog(first: 1) { nodes { id } } }" },
  },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/spend?by=key" },
    graphql: { field: "Query.spend", document: "{ spend(by: KEY) { groupCount } }" },
  },
  { needs: "operator", rest: { method: "GET", path: "/operator/spend?by=model&format=csv" } },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/sales" },
    graphql: { field: "Query.sales", document: "{ sales { day } }" },
  },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/margins?by=model" },
    graphql: { field: "Query.margins", document: "{ margins(by: [MODEL]) { requests } }" },
  },
  {
    needs: "operator",
    rest: { method: "GET", path: "/operator/routes?model=acme/chat" },
    graphql: { field: "Query.modelRoutes", document: "{ modelRoutes(first: 1) { nodes { modelId } } }" },
  },
  {
    needs: "operator",
    refusal: "BAD_REQUEST",
    rest: { method: "PATCH", path: "/operator/routes", body: { model: "acme/none", upstream: "acme", weight: 1 } },
    graphql: {
      field: "Mutation.updateRoute",
      document: mutation("updateRoute", "warnings"),
      input: { modelId: "acme/none", upstream: "acme", weight: 1 },
    },
  },
  {
    needs: "operator",
    refusal: "BAD_REQUEST",
    rest: { method: "POST", path: "/operator/routes", body: { model: "acme/none", upstream: "acme", upstream_model: "m" } },
    graphql: {
      field: "Mutation.addRoute",
      document: mutation("addRoute", "warnings"),
      input: { modelId: "acme/none", upstream: "acme", upstreamModel: "m" },
    },
  },
  {
    needs: "operator",
    refusal: "BAD_REQUEST",
    graphql: {
      field: "Mutation.removeRoute",
      document: mutation("removeRoute", "warnings"),
      input: { modelId: "acme/none", upstream: "acme" },
    },
  },
  {
    needs: "operator",
    refusal: "BAD_REQUEST",
    rest: { method: "DELETE", path: "/operator/routes?model=acme/none" },
    graphql: { field: "Mutation.resetRoutes", document: mutation("resetRoutes", "warnings"), input: { modelId: "acme/none" } },
  },
  {
    needs: "operator",
    refusal: "BAD_REQUEST",
    rest: { method: "PATCH", path: "/operator/routing", body: { model: "acme/none", routing: "price" } },
    graphql: {
      field: "Mutation.setRouting",
      document: mutation("setRouting", "warnings"),
      input: { modelId: "acme/none", routing: "PRICE" },
    },
  },
  {
    needs: "operator",
    graphql: { field: "Query.gateway", document: "{ gateway { asOf holds { count } leases { count } processes { processId } } }" },
  },
  { needs: "operator", graphql: { field: "Query.refusedSettlements", document: "{ refusedSettlements { count } }" } },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.retryRefusedSettlements",
      document: mutation("retryRefusedSettlements", "refusedSettlements { count }"),
      input: {},
    },
  },
  {
    needs: "operator",
    graphql: {
      field: "Mutation.grantCredits",
      document: mutation("grantCredits", "account { id }"),
      input: { accountId: NOBODY, bucket: "PACK", credits: "1" },
    },
  },
];

/**
 * Fields of the roots and of `me` that are not asked here: they need no more than any caller, or their own tests ask them of everybody
 * (guesses of device codes are counted, passwords are slow by intent, media have permissions of their own).
 */
export const ELSEWHERE: readonly string[] = [
  // With each type that they find.
  ...["node", "nodes"].map((name) => `Query.${name}`),
  // With the owners of stored responses in `rest/stored-responses.test`.
  "Account.storedResponses",
  ...["models", "model", "countTokens", "quote", "generationJob", "storedResponse", "media", "publicMedia", "deviceAuthorization"].map(
    (name) => `Query.${name}`,
  ),
  ...[
    "createChatCompletion",
    "createSpeech",
    "generateMusic",
    "createTranscription",
    "createEmbeddings",
    "startImage",
    "startMusic",
    "startVideo",
  ].map((name) => `Mutation.${name}`),
  ...["cancelGeneration", "generateImage", "editImage", "varyImage", "createModeration", "rerank", "createResponse"].map(
    (name) => `Mutation.${name}`,
  ),
  ...["startResponse", "cancelStoredResponse", "deleteStoredResponse"].map((name) => `Mutation.${name}`),
  ...["uploadMedia", "createUpload", "completeUpload", "deleteMedia"].map((name) => `Mutation.${name}`),
  ...["signUp", "signIn", "signOut", "changePassword"].map((name) => `Mutation.${name}`),
  ...["exchangeAuthorizationCode", "createDeviceAuthorization", "redeemDeviceCode"].map((name) => `Mutation.${name}`),
  ...["approveDeviceAuthorization", "denyDeviceAuthorization"].map((name) => `Mutation.${name}`),
  // With `communityModels`.
  "Account.communityModelProvider",
  // With `email` and with `me` itself.
  ...[
    "id",
    "restId",
    "handle",
    "image",
    "isOperator",
    "isPublisher",
    "name",
    "isEmailVerified",
    "githubUsername",
    "tier",
    "createdAt",
    "nextResetAt",
    "suspendedAt",
    "suspensionReason",
    "media",
    "mediaQuota",
  ].map((name) => `Account.${name}`),
];
