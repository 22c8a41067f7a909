/** Names and descriptions of the operations for agents, apps, sessions, webhooks and community models. Part of `operations.ts`. */
import type { Operation } from "./operation.js";

export const AGENT_OPERATIONS = {
  "GET /account/agents": { id: "listAgents", tag: "Agents", summary: "Lists the account's agents, newest first.", answer: "AgentList" },
  "POST /account/agents": {
    id: "createAgent",
    tag: "Agents",
    summary: "Creates an agent, which can then be called as a model.",
    description:
      "Creates a prompt agent unless `type` is `code_agent`. The agent is called as `community/<owner>/<name>` and is free; the models that it calls are billed to its caller. A public agent needs community publisher access.",
    answer: "Agent",
  },
  "GET /account/agents/{agent}": { id: "getAgent", tag: "Agents", summary: "Returns an agent.", answer: "Agent" },
  "PATCH /account/agents/{agent}": {
    id: "updateAgent",
    tag: "Agents",
    summary: "Updates an agent. Omitted fields do not change.",
    description: "The repository, name, title and description of a code agent cannot change after its creation.",
    answer: "Agent",
  },
  "DELETE /account/agents/{agent}": {
    id: "deleteAgent",
    tag: "Agents",
    summary: "Deletes an agent and its model.",
    answer: "DeletedAgent",
  },
} as const satisfies Readonly<Record<string, Operation>>;

export const AUTHORIZATION_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /authorize": {
    id: "authorize",
    tag: "Authorization",
    summary: "Shows the consent page, on which a person lets an app spend their credits. Open it in a browser.",
    description:
      "The browser is redirected with `#api_key=...&state=...`, or with `?code=...&state=...&iss=...` when a challenge was sent. A denial is redirected with `error=access_denied`. An invalid request is answered with an error page of the gateway.",
    contentTypes: ["text/html"],
    redirect: { status: "303", why: "To the sign-in page, when no one is signed in." },
  },
  "POST /authorize": { id: "submitAuthorization", tag: "Authorization", summary: "Approves or denies the request.", isHidden: true },
  "POST /api/oauth/token": {
    id: "createToken",
    tag: "Authorization",
    summary: "Exchanges an authorization code, or a device code, for a key (RFC 6749).",
    description:
      "`grant_type` is `authorization_code`, with `code`, `redirect_uri`, `code_verifier` and, when it was sent before, the app key as `client_id`; or `urn:ietf:params:oauth:grant-type:device_code`, with `device_code`. A code can be exchanged once within 10 minutes. A second exchange revokes the key that it was exchanged for.",
    answer: "Token",
  },
  "GET /.well-known/oauth-authorization-server": {
    id: "getAuthorizationServer",
    tag: "Authorization",
    summary: "Returns the metadata for OAuth clients (RFC 8414).",
    answer: "AuthorizationServer",
  },
};

const BROKER_ERRORS = ["502", "504"] as const;

export const INTEGRATION_OPERATIONS = {
  "GET /account/integrations": {
    id: "listIntegrations",
    tag: "Connected apps",
    summary: "Lists the account's connections to external apps.",
    answer: "ConnectedAppList",
    errors: BROKER_ERRORS,
  },
  "POST /account/integrations": {
    id: "connectIntegration",
    tag: "Connected apps",
    summary: "Creates a connection.",
    description: "Open `url` in the person's browser, where they sign in to the app and approve. The connection then becomes `active`.",
    answer: "NewConnection",
    errors: ["409", ...BROKER_ERRORS],
  },
  "GET /account/integrations/toolkits": {
    id: "listToolkits",
    tag: "Connected apps",
    summary: "Lists external apps that can be connected.",
    answer: "ToolkitList",
    errors: BROKER_ERRORS,
  },
  "DELETE /account/integrations/{integration}": {
    id: "deleteIntegration",
    tag: "Connected apps",
    summary: "Deletes a connection.",
    hasNoContent: true,
    errors: BROKER_ERRORS,
  },
  "GET /integrations/connect": { id: "showConnection", tag: "Connected apps", summary: "Shows the page of a connection.", isHidden: true },
  "POST /integrations/connect": {
    id: "submitConnection",
    tag: "Connected apps",
    summary: "Approves or denies the connection.",
    isHidden: true,
  },
  "GET /integrations/callback": {
    id: "showConnectionOutcome",
    tag: "Connected apps",
    summary: "Shows the result of the connection.",
    isHidden: true,
  },
} as const satisfies Readonly<Record<string, Operation>>;

// Sessions and sign-in pages, which API clients do not call.

const page = (id: string, summary: string): Operation => ({ id, tag: "Authorization", summary, isHidden: true });

export const SESSION_OPERATIONS: Readonly<Record<string, Operation>> = {
  "PATCH /account/profile": {
    id: "updateProfile",
    tag: "Account",
    summary: "Updates the profile of the account. Sessions only.",
    answer: "Profile",
  },
  "GET /account/sessions": {
    id: "listSessions",
    tag: "Account",
    summary: "Lists the account's sessions. Sessions only.",
    answer: "Sessions",
  },
  "DELETE /account/sessions": {
    id: "revokeOtherSessions",
    tag: "Account",
    summary: "Ends all sessions except the current one. Sessions only.",
    answer: "EndedSessions",
  },
  "DELETE /account/sessions/{id}": {
    id: "revokeSession",
    tag: "Account",
    summary: "Ends a session, on all gateways within a second. Sessions only.",
    answer: "RevokedSession",
  },
  "GET /sign-in": page("showSignIn", "Shows the sign-in page."),
  "POST /sign-in": page("submitSignIn", "Signs in."),
  "POST /sign-in/github": page("startGitHubSignIn", "Redirects the browser to GitHub."),
  "GET /api/auth/callback/github": page("finishGitHubSignIn", "Receives the browser from GitHub after sign-in."),
  "GET /sign-up": page("showSignUp", "Shows the sign-up page."),
  "POST /sign-up": page("submitSignUp", "Creates an account and signs in."),
  "POST /sign-out": page("submitSignOut", "Ends the current session."),
  "GET /home": page("showHome", "Shows the person's balance, keys and recent usage."),
  "GET /home/keys": page("showKeys", "Shows all keys of the person."),
  "GET /home/keys/new": page("showNewKey", "Shows the page that creates a key."),
  "POST /home/keys/new": page("submitNewKey", "Creates a key."),
  "GET /home/keys/made": page("showMadeKey", "Shows a new key, once."),
  "POST /home/keys/{id}/revoke": page("submitRevokeKey", "Revokes a key."),
  "GET /sessions": page("showSessions", "Shows the account's sessions."),
  "POST /sessions/revoke-others": page("submitRevokeOtherSessions", "Ends all other sessions."),
  "POST /sessions/{id}/revoke": page("submitRevokeSession", "Ends a session."),
  "GET /password": page("showPassword", "Shows the page that changes the password."),
  "POST /password": page("submitPassword", "Changes the password."),
};

export const WEBHOOK_OPERATIONS = {
  "GET /account/balance/threshold": {
    id: "getLowBalanceThreshold",
    tag: "Account",
    summary: "Returns the low-balance alert (permission `balance`).",
    answer: "LowBalance",
  },
  "PATCH /account/balance/threshold": {
    id: "setLowBalanceThreshold",
    tag: "Account",
    summary: "Sets the threshold of the low-balance alert (a secret key with `keys`).",
    description:
      "Each fall of the balance below the threshold is sent once, by the webhook `balance.low` and the GraphQL subscription `balanceLow`.",
    answer: "LowBalance",
  },
  "GET /account/webhooks": {
    id: "listWebhooks",
    tag: "Webhooks",
    summary: "Lists the account's webhook endpoints.",
    answer: "WebhookEndpointList",
  },
  "POST /account/webhooks": {
    id: "createWebhook",
    tag: "Webhooks",
    summary: "Adds an endpoint. Its secret is shown only once.",
    answer: "WebhookEndpointWithSecret",
  },
  "PATCH /account/webhooks/{webhook}": {
    id: "updateWebhook",
    tag: "Webhooks",
    summary: "Updates an endpoint.",
    description: "After it is enabled again, or its events change, the endpoint receives only later events.",
    answer: "WebhookEndpoint",
  },
  "DELETE /account/webhooks/{webhook}": {
    id: "deleteWebhook",
    tag: "Webhooks",
    summary: "Deletes an endpoint and its log.",
    answer: "DeletedWebhookEndpoint",
  },
  "POST /account/webhooks/{webhook}/rotate-secret": {
    id: "rotateWebhookSecret",
    tag: "Webhooks",
    summary: "Replaces the signing secret. The new secret is shown only once.",
    description: "For 24 hours, messages are also signed with the old secret.",
    answer: "WebhookEndpointWithSecret",
  },
  "POST /account/webhooks/{webhook}/test": {
    id: "testWebhook",
    tag: "Webhooks",
    summary: "Sends the test event `webhook.test`.",
    answer: "WebhookDelivery",
  },
  "GET /account/webhooks/{webhook}/deliveries": {
    id: "listWebhookDeliveries",
    tag: "Webhooks",
    summary: "Lists deliveries and their status, newest first.",
    answer: "WebhookDeliveryList",
  },
  "POST /account/webhooks/{webhook}/deliveries/{delivery}/redeliver": {
    id: "redeliverWebhook",
    tag: "Webhooks",
    summary: "Sends a message again with the same ID.",
    answer: "WebhookDelivery",
  },
} as const satisfies Readonly<Record<string, Operation>>;

export const MY_MODEL_OPERATIONS = {
  "GET /account/my-models": {
    id: "listMyModels",
    tag: "Community models",
    summary: "Lists the account's models and agents, newest first, and the account's provider profile.",
    answer: "CommunityModelList",
  },
  "POST /account/my-models": {
    id: "createMyModel",
    tag: "Community models",
    summary: "Registers a model that runs on the account's own upstream.",
    description:
      "The model is called as `community/<owner>/<name>`. The upstream's credential is stored encrypted and never shown. A public model needs community publisher access and becomes public after three hours.",
    answer: "CommunityModel",
    errors: ["409"],
  },
  "POST /account/my-models/endpoint-agents": {
    id: "createEndpointAgent",
    tag: "Community models",
    summary: "Registers an agent that its owner hosts. It is called like a text model, without a credential, and is free.",
    answer: "CommunityModel",
    errors: ["409"],
  },
  "POST /account/my-models/test": {
    id: "testMyModel",
    tag: "Community models",
    summary: "Tests an upstream with one call, as cheap as its modality allows.",
    description:
      "Limited to one test in 30 seconds per account. Send the `id` of a registered model, or the settings of an upstream as for a registration. Image and video models are called without a prompt, so that they generate nothing.",
    answer: "CommunityModelTest",
    errors: ["404"],
  },
  "GET /account/my-models/{communityModel}": {
    id: "getMyModel",
    tag: "Community models",
    summary: "Returns a registered model.",
    answer: "CommunityModel",
  },
  "PATCH /account/my-models/{communityModel}": {
    id: "updateMyModel",
    tag: "Community models",
    summary: "Updates a model. Omitted fields do not change.",
    description:
      "On a public model, changes of `paidOnly`, `imagePricing` and prices take effect after three hours; until then they are in `pending`. Making a model private takes effect at once. A new URL requires `bearerToken` again.",
    answer: "CommunityModel",
  },
  "POST /account/my-models/{communityModel}/update": {
    id: "postMyModelUpdate",
    tag: "Community models",
    summary: "Updates a model, for clients that cannot send PATCH. Omitted fields do not change.",
    answer: "CommunityModel",
  },
  "DELETE /account/my-models/{communityModel}": {
    id: "deleteMyModel",
    tag: "Community models",
    summary: "Deletes a model, or an agent with all its data.",
    answer: "DeletedCommunityModel",
  },
  "GET /account/my-models/{communityModel}/fallback-candidates": {
    id: "listFallbackCandidates",
    tag: "Community models",
    summary: "Lists models that can be fallbacks of this model, the account's own first.",
    answer: "FallbackCandidateList",
  },
} as const satisfies Readonly<Record<string, Operation>>;
