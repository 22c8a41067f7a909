/** What the operations about what an account has (agents, apps, sessions, webhooks, community models) are called and do; a part of `operations.ts`. */
import type { Operation } from "./operation.js";

export const AGENT_OPERATIONS = {
  "GET /account/agents": { id: "listAgents", tag: "Agents", summary: "The account's agents, newest first.", answer: "AgentList" },
  "POST /account/agents": {
    id: "createAgent",
    tag: "Agents",
    summary: "Makes an agent, which is then a model that can be called.",
    description:
      "A prompt agent unless `type` is `code_agent`. It is called by `community/<owner>/<name>` and is free; the models that it asks are billed to whoever calls it. A public one needs community publisher access.",
    answer: "Agent",
  },
  "GET /account/agents/{agent}": { id: "getAgent", tag: "Agents", summary: "One agent.", answer: "Agent" },
  "PATCH /account/agents/{agent}": {
    id: "updateAgent",
    tag: "Agents",
    summary: "Changes the fields that are sent.",
    description: "A code agent's repository, name, title and description are fixed after its creation.",
    answer: "Agent",
  },
  "DELETE /account/agents/{agent}": {
    id: "deleteAgent",
    tag: "Agents",
    summary: "Removes an agent with its model.",
    answer: "DeletedAgent",
  },
} as const satisfies Readonly<Record<string, Operation>>;

// The redirect flow.

export const AUTHORIZATION_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /authorize": {
    id: "authorize",
    tag: "Authorization",
    summary: "The page on which a person lets an app spend their credits. Send a browser there.",
    description:
      "The browser comes back with `#api_key=...&state=...`, or with `?code=...&state=...&iss=...` where a challenge was sent; denied, with `error=access_denied`. What is wrong with the request is told on a page of the gateway's.",
    contentTypes: ["text/html"],
    redirect: { status: "303", why: "To the page to sign in on: nobody is signed in." },
  },
  "POST /authorize": { id: "submitAuthorization", tag: "Authorization", summary: "Allows or denies.", isHidden: true },
  "POST /api/oauth/token": {
    id: "createToken",
    tag: "Authorization",
    summary: "Exchanges an authorization code, or a device code, for a key (RFC 6749).",
    description:
      "`grant_type` is `authorization_code`, with `code`, `redirect_uri`, `code_verifier` and, where one was sent, the app key as `client_id`; or `urn:ietf:params:oauth:grant-type:device_code`, with `device_code`. A code is good for 10 minutes, once: a second time ends the key that it was exchanged for.",
    answer: "Token",
  },
  "GET /.well-known/oauth-authorization-server": {
    id: "getAuthorizationServer",
    tag: "Authorization",
    summary: "What OAuth clients can do here (RFC 8414).",
    answer: "AuthorizationServer",
  },
};

// Connected apps.

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

// Sessions and sign-in. People use the pages; clients of the API do not.

const page = (id: string, summary: string): Operation => ({ id, tag: "Authorization", summary, isHidden: true });

export const SESSION_OPERATIONS: Readonly<Record<string, Operation>> = {
  "PATCH /account/profile": {
    id: "updateProfile",
    tag: "Account",
    summary: "Changes how the account and its owner are called. Sessions only.",
    answer: "Profile",
  },
  "GET /account/sessions": {
    id: "listSessions",
    tag: "Account",
    summary: "Where the account is signed in. Sessions only.",
    answer: "Sessions",
  },
  "DELETE /account/sessions": {
    id: "revokeOtherSessions",
    tag: "Account",
    summary: "Ends every session but the one that asks. Sessions only.",
    answer: "EndedSessions",
  },
  "DELETE /account/sessions/{id}": {
    id: "revokeSession",
    tag: "Account",
    summary: "Ends a session, everywhere within a second. Sessions only.",
    answer: "RevokedSession",
  },
  "GET /sign-in": page("showSignIn", "The page to sign in on."),
  "POST /sign-in": page("submitSignIn", "Signs in."),
  "POST /sign-in/github": page("startGitHubSignIn", "Sends the browser to GitHub."),
  "GET /api/auth/callback/github": page("finishGitHubSignIn", "Where GitHub sends it back to."),
  "GET /sign-up": page("showSignUp", "The page to make an account on."),
  "POST /sign-up": page("submitSignUp", "Makes an account and signs in."),
  "POST /sign-out": page("submitSignOut", "Ends the session."),
  "GET /home": page("showHome", "What a person has: balance, keys, recent usage."),
  "GET /home/keys": page("showKeys", "All keys of a person."),
  "GET /home/keys/new": page("showNewKey", "The page to make a key on."),
  "POST /home/keys/new": page("submitNewKey", "Makes a key."),
  "GET /home/keys/made": page("showMadeKey", "Shows a new key, once."),
  "POST /home/keys/{id}/revoke": page("submitRevokeKey", "Revokes a key."),
  "GET /sessions": page("showSessions", "Where the account is signed in."),
  "POST /sessions/revoke-others": page("submitRevokeOtherSessions", "Ends the other sessions."),
  "POST /sessions/{id}/revoke": page("submitRevokeSession", "Ends a session."),
  "GET /password": page("showPassword", "The page to change the password on."),
  "POST /password": page("submitPassword", "Changes the password."),
};

// Webhooks and low balances.

export const WEBHOOK_OPERATIONS = {
  "GET /account/balance/threshold": {
    id: "getLowBalanceThreshold",
    tag: "Account",
    summary: "The balance below which the account is told (permission `balance`).",
    answer: "LowBalance",
  },
  "PATCH /account/balance/threshold": {
    id: "setLowBalanceThreshold",
    tag: "Account",
    summary: "Changes the balance below which the account is told (a secret key with `keys`).",
    description: "Each fall below it is told once, by the webhook `balance.low` and the GraphQL subscription `balanceLow`.",
    answer: "LowBalance",
  },
  "GET /account/webhooks": { id: "listWebhooks", tag: "Webhooks", summary: "The account's endpoints.", answer: "WebhookEndpointList" },
  "POST /account/webhooks": {
    id: "createWebhook",
    tag: "Webhooks",
    summary: "Adds an endpoint. Its secret is shown this once.",
    answer: "WebhookEndpointWithSecret",
  },
  "PATCH /account/webhooks/{webhook}": {
    id: "updateWebhook",
    tag: "Webhooks",
    summary: "Changes an endpoint.",
    description: "Enabled again, or given other events, it is sent what happens from now on.",
    answer: "WebhookEndpoint",
  },
  "DELETE /account/webhooks/{webhook}": {
    id: "deleteWebhook",
    tag: "Webhooks",
    summary: "Removes an endpoint with its log.",
    answer: "DeletedWebhookEndpoint",
  },
  "POST /account/webhooks/{webhook}/rotate-secret": {
    id: "rotateWebhookSecret",
    tag: "Webhooks",
    summary: "Makes another secret, which is shown this once.",
    description: "For 24 hours messages are signed with the one before it too.",
    answer: "WebhookEndpointWithSecret",
  },
  "POST /account/webhooks/{webhook}/test": {
    id: "testWebhook",
    tag: "Webhooks",
    summary: "Sends the event `webhook.test`.",
    answer: "WebhookDelivery",
  },
  "GET /account/webhooks/{webhook}/deliveries": {
    id: "listWebhookDeliveries",
    tag: "Webhooks",
    summary: "What was sent and how it went, newest first.",
    answer: "WebhookDeliveryList",
  },
  "POST /account/webhooks/{webhook}/deliveries/{delivery}/redeliver": {
    id: "redeliverWebhook",
    tag: "Webhooks",
    summary: "Sends a message anew, under the same id.",
    answer: "WebhookDelivery",
  },
} as const satisfies Readonly<Record<string, Operation>>;

// Community models.

export const MY_MODEL_OPERATIONS = {
  "GET /account/my-models": {
    id: "listMyModels",
    tag: "Community models",
    summary: "The account's models and agents, newest first, and who offers them.",
    answer: "CommunityModelList",
  },
  "POST /account/my-models": {
    id: "createMyModel",
    tag: "Community models",
    summary: "Registers a model that an upstream of the account's runs.",
    description:
      "It is called by `community/<owner>/<name>`. The upstream's credential is stored encrypted and never shown. A public one needs community publisher access and becomes public after three hours.",
    answer: "CommunityModel",
    errors: ["409"],
  },
  "POST /account/my-models/endpoint-agents": {
    id: "createEndpointAgent",
    tag: "Community models",
    summary: "Registers an agent that its owner runs: called like a text model, without a credential and for nothing.",
    answer: "CommunityModel",
    errors: ["409"],
  },
  "POST /account/my-models/test": {
    id: "testMyModel",
    tag: "Community models",
    summary: "Calls an upstream once, as cheaply as its modality allows, to see whether it answers.",
    description:
      "At most once in 30 seconds for each account. The upstream is a registered model's, by its `id` alone, or is described as for a registration. Pictures and videos are asked for without a prompt, so that nothing is made.",
    answer: "CommunityModelTest",
    errors: ["404"],
  },
  "GET /account/my-models/{communityModel}": { id: "getMyModel", tag: "Community models", summary: "One model.", answer: "CommunityModel" },
  "PATCH /account/my-models/{communityModel}": {
    id: "updateMyModel",
    tag: "Community models",
    summary: "Changes the fields that are sent.",
    description:
      "On a public model a change of `paidOnly`, `imagePricing` or a price waits for three hours, and stands in `pending` meanwhile. Going private is immediate. Another address needs the `bearerToken` again.",
    answer: "CommunityModel",
  },
  "POST /account/my-models/{communityModel}/update": {
    id: "postMyModelUpdate",
    tag: "Community models",
    summary: "Changes the fields that are sent, for clients that cannot PATCH.",
    answer: "CommunityModel",
  },
  "DELETE /account/my-models/{communityModel}": {
    id: "deleteMyModel",
    tag: "Community models",
    summary: "Removes a model, or an agent with all that is kept to run it.",
    answer: "DeletedCommunityModel",
  },
  "GET /account/my-models/{communityModel}/fallback-candidates": {
    id: "listFallbackCandidates",
    tag: "Community models",
    summary: "The models that could be fallbacks of this one, the account's own first.",
    answer: "FallbackCandidateList",
  },
} as const satisfies Readonly<Record<string, Operation>>;
