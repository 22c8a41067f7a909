/** GraphQL beside REST: a document for each operation of REST, by its operation ID. */

const MODELS = (filter: string) => `{
  models(first: 10, filter: { ${filter} }) {
    nodes { restId title pricing { inputTextTokens outputTextTokens } }
  }
}`;
const me = (selection: string) => `{
  me {
    ${selection}
  }
}`;
const mutation = (name: string, input: string, selection: string) => `mutation {
  ${name}(input: { ${input} }) {
    ${selection}
  }
}`;
/** With a file, which is sent as a multipart request. */
const withFile = (name: string, input: string, selection: string) => `mutation ($file: File!) {
  ${name}(input: { file: $file${input} }) {
    ${selection}
  }
}`;

const CHAT = `{ model: "sandbox/text", messages: [{ role: USER, content: "Hello" }] }`;
const CREATE_TEXT = `mutation {
  createChatCompletion(input: ${CHAT}) {
    completion { choices { message { content } } }
    receipt { cost }
  }
}`;
const IMAGE = "images { base64 url contentType } receipt { cost }";
const JOB = "job { restId status progress }";
const JOB_RESULT = `{
  generationJob(id: "ID") {
    status
    progress
    result { url contentType }
    error { code message }
  }
}`;
const MODEL_FIELDS = "restId modelId title visibility";
const AGENT_FIELDS = "restId modelId title visibility";
const ENDPOINT = "webhookEndpoint { restId url events isEnabled }";
const USAGE = "nodes { restId timestamp cost model { restId } } pageInfo { hasNextPage endCursor }";
const KEY_FIELDS = "restId name type permissions creditBudget expiresAt";
const USAGE_LIMIT_FIELDS =
  "restId apiKeyId metric amount period minutes isRolling timeZone alertAt usage { spent remaining percent renewsAt }";
const VENDOR_KEY_FIELDS = "restId vendor name ending use modelIds refusal";
const RUN_FIELDS = "restId label status maxCost spent left asked";
const AUTO_TOP_UP_FIELDS = "isEnabled threshold amount monthlyCap isPending problem nextAttemptAt gaveUpAt";
const ALERT_FIELDS = "restId kind message subjectId createdAt acknowledgedAt isSilenced";
const ALERT_RULE_FIELDS = "kind isEnabled percents days minimumSpend";
const TOP_UP_FIELDS = "restId state credits amount currency createdAt paidAt";
const EMBED = mutation("createEmbeddings", 'input: [{ text: "Hello" }]', "embeddings { index vector } receipt { cost }");
const UPDATE_MODEL = mutation("updateCommunityModel", 'id: "ID", title: "New title"', `communityModel { ${MODEL_FIELDS} }`);

const INPUT_OVER_REST = "GraphQL has the stored response; its input items are listed in the Responses format alone.";
const CONVERSATIONS_OVER_REST = "Conversations belong to the Responses format. createResponse continues one by its ID.";

export const GRAPHQL_EXAMPLES: ReadonlyMap<string, string> = new Map([
  // Text
  ["createChatCompletion", CREATE_TEXT],
  ["createText", CREATE_TEXT],
  ["getText", CREATE_TEXT],
  [
    "createResponse",
    mutation("createResponse", 'model: "sandbox/text", input: { text: "Hello" }', "response { outputText } receipt { cost }"),
  ],
  ["retrieveResponse", `{ storedResponse(id: "ID") { restId status response { outputText } } }`],
  ["deleteResponse", mutation("deleteStoredResponse", 'id: "ID"', "deletedId")],
  ["cancelResponse", mutation("cancelStoredResponse", 'id: "ID"', "storedResponse { status }")],
  ["createMessage", CREATE_TEXT],
  ["generateContent", CREATE_TEXT],
  ["streamGenerateContent", CREATE_TEXT],
  ...["countMessageTokens", "countResponseTokens", "countContentTokens"].map((name): [string, string] => [
    name,
    `{ countTokens(input: ${CHAT}) { inputTokens } }`,
  ]),
  [
    "createQuote",
    '{ quote(input: { path: "/v1/chat/completions", body: { model: "sandbox/text-paid", messages: [{ role: "user", content: "Hello" }] } }) { least expected most notes } }',
  ],
  ...["embedContent", "batchEmbedContents"].map((name): [string, string] => [name, EMBED]),
  ["createEmbeddings", EMBED],
  ["createModeration", mutation("createModeration", 'input: [{ text: "Hello" }]', "moderation { results { isFlagged } } receipt { cost }")],
  [
    "rerank",
    mutation(
      "rerank",
      'query: "A fox", documents: ["The sea is calm.", "A fox ran by."]',
      "results { index relevanceScore } receipt { cost }",
    ),
  ],
  // Images and video
  ["createImage", mutation("generateImage", 'prompt: "A heron", size: "1024x1024"', IMAGE)],
  ["getImage", mutation("generateImage", 'prompt: "A heron", seed: 1', IMAGE)],
  ["createImageVariation", mutation("varyImage", 'image: "https://example.com/heron.png"', IMAGE)],
  ["editImage", mutation("editImage", 'prompt: "At night", images: ["https://example.com/heron.png"]', IMAGE)],
  ["createVideo", mutation("startVideo", 'prompt: "A heron", duration: 4', JOB)],
  ["getVideo", mutation("startVideo", 'prompt: "A heron", duration: 4', JOB)],
  ["retrieveVideo", JOB_RESULT],
  ["downloadVideoContent", JOB_RESULT],
  ["getGenerationContent", JOB_RESULT],
  ["deleteVideo", mutation("cancelGeneration", 'id: "ID"', "job { restId status }")],
  // Audio
  ["createSpeech", mutation("createSpeech", 'input: "Hello", voice: "alloy"', "speech { audio contentType } receipt { cost }")],
  ["getAudio", mutation("createSpeech", 'input: "Hello"', "speech { audio contentType } receipt { cost }")],
  ["createTranslation", withFile("createTranscription", ", isTranslation: true", "transcription { text } receipt { cost }")],
  ["createTranscription", withFile("createTranscription", "", "transcription { text } receipt { cost }")],
  // Models
  ["listModels", "{ models(first: 10) { nodes { restId title modality } } }"],
  ["listOpenAiModels", MODELS("modalities: [TEXT]")],
  ["listGeminiModels", MODELS("modalities: [TEXT]")],
  ["listTextModels", MODELS("modalities: [TEXT]")],
  ["listImageModels", MODELS("modalities: [IMAGE, VIDEO]")],
  ["listVideoModels", MODELS("modalities: [VIDEO]")],
  ["listAudioModels", MODELS("modalities: [SPEECH, MUSIC, TRANSCRIPTION]")],
  ["listEmbeddingModels", MODELS("modalities: [EMBEDDING]")],
  ["getOpenAiModel", '{ model(id: "sandbox/text") { restId title contextLength capabilities } }'],
  ["getGeminiModel", '{ model(id: "sandbox/text") { restId title contextLength capabilities } }'],
  // Account
  ["getProfile", me("handle name email tier createdAt nextResetAt")],
  ["updateProfile", mutation("updateProfile", 'name: "Ada"', "account { handle name }")],
  ["getUserInfo", me("restId handle name email image")],
  ["getBalance", me("balance { available tier crypto pack held }")],
  ["getLowBalanceThreshold", me("lowBalance { threshold since }")],
  ["setLowBalanceThreshold", mutation("setLowBalanceThreshold", 'threshold: "5"', "lowBalance { threshold since }")],
  ["listLedger", me("ledger(first: 20) { nodes { kind bookedAt credits balanceAfter } pageInfo { endCursor } }")],
  ["listTopUps", me(`topUps(first: 20) { nodes { ${TOP_UP_FIELDS} } pageInfo { endCursor } }`)],
  ["createCheckout", mutation("createCheckout", 'credits: "25"', `url topUp { ${TOP_UP_FIELDS} }`)],
  ["getTopUp", `{\n  node(id: "ID") {\n    ... on CreditTopUp { ${TOP_UP_FIELDS} }\n  }\n}`],
  ["setAppMargin", mutation("setAppMargin", 'appId: "ID", marginPercent: 10', "appId marginPercent")],
  ["getEarnings", me("earnings { pending available daily(days: 30) { date kind source requests credits } }")],
  ["listEarnings", me("earnings { shares(first: 20) { nodes { kind source credits maturesAt } pageInfo { endCursor } } }")],
  ["convertEarnings", mutation("convertEarnings", 'credits: "2.5"', "converted")],
  ["listOwedEarnings", "{ owedEarnings { accountId handle available pending } }"],
  ["getAutoTopUp", me(`autoTopUp { ${AUTO_TOP_UP_FIELDS} }`)],
  [
    "updateAutoTopUp",
    mutation("updateAutoTopUp", 'isEnabled: true, threshold: "5", amount: "25", monthlyCap: "100"', `autoTopUp { ${AUTO_TOP_UP_FIELDS} }`),
  ],
  ["listInvoices", me("invoices(first: 20) { number status amount currency issuedAt url pdfUrl }")],
  ["createBillingPortal", "mutation { createBillingPortal(input: {}) { url } }"],
  ["listAlerts", me(`alerts(first: 20) { nodes { ${ALERT_FIELDS} } pageInfo { endCursor } }`)],
  ["acknowledgeAlert", mutation("acknowledgeAlert", 'id: "ID"', `alert { ${ALERT_FIELDS} }`)],
  ["listAlertRules", me(`alertRules { ${ALERT_RULE_FIELDS} }`)],
  ["updateAlertRule", mutation("updateAlertRule", "kind: BUDGET_REACHED, percents: [50, 90]", `alertRule { ${ALERT_RULE_FIELDS} }`)],
  ["listAlertSilences", me("alertSilences { kind subjectId until }")],
  ["silenceAlerts", mutation("silenceAlerts", "kind: KEY_UNUSED", "alertSilence { kind subjectId until }")],
  ["unsilenceAlerts", mutation("unsilenceAlerts", "kind: KEY_UNUSED", "kind")],
  ["listSessions", me("sessions(first: 20) { nodes { restId createdAt userAgent isCurrent } }")],
  ["revokeSession", mutation("revokeSession", 'id: "ID"', "session { restId }")],
  ["revokeOtherSessions", "mutation { revokeOtherSessions(input: {}) { ended } }"],
  // Keys
  ["getCurrentKey", me(`currentApiKey { ${KEY_FIELDS} }`)],
  ["listRuns", me(`runs(first: 20) { nodes { ${RUN_FIELDS} } pageInfo { endCursor } }`)],
  ["createRun", mutation("createRun", 'maxCost: "0.5", ttl: 900', `key run { ${RUN_FIELDS} }`)],
  ["getRun", `{\n  run(id: "ID") {\n    ${RUN_FIELDS}\n  }\n}`],
  ["endRun", mutation("endRun", 'id: "ID"', `run { ${RUN_FIELDS} }`)],
  ["approveRun", mutation("approveRun", 'id: "ID", amount: "0.25"', `run { ${RUN_FIELDS} }`)],
  ["listKeys", me(`apiKeys(first: 20) { nodes { ${KEY_FIELDS} } pageInfo { endCursor } }`)],
  ["getKey", `{\n  node(id: "ID") {\n    ... on ApiKey { ${KEY_FIELDS} }\n  }\n}`],
  ["createKey", mutation("createApiKey", 'name: "My key", creditBudget: "5"', `key apiKey { ${KEY_FIELDS} }`)],
  ["updateKey", mutation("updateApiKey", 'id: "ID", name: "New name"', `apiKey { ${KEY_FIELDS} }`)],
  ["revokeKey", mutation("revokeApiKey", 'id: "ID"', "apiKey { restId }")],
  ["listVendorKeys", me(`vendorKeys(first: 20) { nodes { ${VENDOR_KEY_FIELDS} } } vendorKeyTerms { vendors feePercent }`)],
  ["createVendorKey", mutation("createVendorKey", 'vendor: "openai", secret: "sk-..."', `vendorKey { ${VENDOR_KEY_FIELDS} }`)],
  ["getVendorKey", `{\n  node(id: "ID") {\n    ... on VendorKey { ${VENDOR_KEY_FIELDS} }\n  }\n}`],
  ["updateVendorKey", mutation("updateVendorKey", 'id: "ID", use: ONLY', `vendorKey { ${VENDOR_KEY_FIELDS} }`)],
  ["deleteVendorKey", mutation("deleteVendorKey", 'id: "ID"', "deletedId")],
  ["listUsageLimits", me(`usageLimits(first: 20) { nodes { ${USAGE_LIMIT_FIELDS} } }`)],
  [
    "createUsageLimit",
    mutation("createUsageLimit", 'apiKeyId: "ID", metric: CREDITS, amount: "5", period: DAY', `usageLimit { ${USAGE_LIMIT_FIELDS} }`),
  ],
  ["getUsageLimit", `{\n  node(id: "ID") {\n    ... on UsageLimit { ${USAGE_LIMIT_FIELDS} }\n  }\n}`],
  ["updateUsageLimit", mutation("updateUsageLimit", 'id: "ID", amount: "10"', `usageLimit { ${USAGE_LIMIT_FIELDS} }`)],
  ["deleteUsageLimit", mutation("deleteUsageLimit", 'id: "ID"', "deletedId")],
  // Usage and logs
  ["listUsage", me(`usage(first: 20) { ${USAGE} }`)],
  ["listKeyUsage", me(`currentApiKey { usage(first: 20) { ${USAGE} } }`)],
  ["listDailyUsage", me("usageDaily { days { date modelId requests cost } }")],
  ["listAppDailyUsage", me('appUsage(appKeyId: "ID") { days { date modelId requests cost } }')],
  [
    "listRequests",
    me("requestLog(first: 20, filter: { outcomes: [FAILED] }) { nodes { requestId status code message } pageInfo { endCursor } }"),
  ],
  ["getRequest", me('loggedRequest(id: "ID") { requestId status code message modelId milliseconds }')],
  // Webhooks
  ["listWebhooks", me("webhookEndpoints(first: 10) { nodes { restId url events isEnabled } }")],
  ["createWebhook", mutation("createWebhookEndpoint", 'url: "https://example.com/hook", events: [USAGE_RECORDED]', `secret ${ENDPOINT}`)],
  ["updateWebhook", mutation("updateWebhookEndpoint", 'id: "ID", isEnabled: false', ENDPOINT)],
  ["deleteWebhook", mutation("deleteWebhookEndpoint", 'id: "ID"', "deletedId")],
  ["rotateWebhookSecret", mutation("rotateWebhookSecret", 'id: "ID"', "secret")],
  ["testWebhook", mutation("sendTestWebhook", 'endpointId: "ID"', "webhookDelivery { restId status }")],
  [
    "listWebhookDeliveries",
    me("webhookEndpoints(first: 10) { nodes { deliveries(first: 20) { nodes { restId event status lastStatus } } } }"),
  ],
  ["redeliverWebhook", mutation("redeliverWebhook", 'endpointId: "ID", deliveryId: "ID"', "webhookDelivery { restId status }")],
  // Own models and agents
  ["listMyModels", me(`communityModels(first: 20) { nodes { ${MODEL_FIELDS} } }`)],
  ["getMyModel", me(`communityModel(id: "ID") { ${MODEL_FIELDS} }`)],
  [
    "createMyModel",
    mutation(
      "createCommunityModel",
      'name: "my-model", title: "My model", api: CHAT_COMPLETIONS, url: "https://example.com/v1/chat/completions", bearerToken: "TOKEN"',
      `communityModel { ${MODEL_FIELDS} }`,
    ),
  ],
  ["updateMyModel", UPDATE_MODEL],
  ["postMyModelUpdate", UPDATE_MODEL],
  ["deleteMyModel", mutation("deleteCommunityModel", 'id: "ID"', "communityModel { restId }")],
  [
    "testMyModel",
    mutation(
      "testCommunityModel",
      'api: CHAT_COMPLETIONS, url: "https://example.com/v1/chat/completions", bearerToken: "TOKEN"',
      "test { isOk }",
    ),
  ],
  ["listFallbackCandidates", me('communityModel(id: "ID") { ... on ProxyModel { fallbackCandidates { modelId } } }')],
  ["listAgents", me(`agents(first: 20) { nodes { ${AGENT_FIELDS} } }`)],
  ["getAgent", me(`agent(id: "ID") { ${AGENT_FIELDS} }`)],
  [
    "createAgent",
    mutation(
      "createPromptAgent",
      'name: "poet", title: "Poet", baseModelId: "sandbox/text", systemPrompt: "Answer in verse."',
      `agent { ${AGENT_FIELDS} }`,
    ),
  ],
  [
    "createEndpointAgent",
    mutation(
      "createEndpointAgent",
      'name: "helper", title: "Helper", api: RESPONSES, url: "https://example.com/v1/responses"',
      `agent { ${AGENT_FIELDS} }`,
    ),
  ],
  ["updateAgent", mutation("updateAgent", 'id: "ID", title: "New title"', `agent { ${AGENT_FIELDS} }`)],
  ["deleteAgent", mutation("deleteAgent", 'id: "ID"', "agent { restId }")],
  ["syncAgent", mutation("syncAgent", 'id: "ID"', "isUpdated deployedCommitSha")],
  // Connected apps
  ["listIntegrations", me("integrations { restId toolkit name status }")],
  ["connectIntegration", mutation("connectIntegration", 'toolkit: "notes"', "integrationId url")],
  ["listToolkits", '{ integrationToolkits(search: "notes") { slug name description } }'],
  ["deleteIntegration", mutation("deleteIntegration", 'id: "ID"', "integration { restId }")],
  // Media
  ["uploadMedia", withFile("uploadMedia", "", "isDuplicate mediaFile { restId url contentType size }")],
  ["completeUpload", mutation("completeUpload", 'id: "ID"', "mediaObject { restId url contentType size tags }")],
  ["listMedia", '{ publicMedia(first: 20, tag: "herons") { nodes { restId url contentType } pageInfo { endCursor } } }'],
  ["getMedia", '{ media(id: "ID") { url contentType size } }'],
  ["getMediaMetadata", '{ media(id: "ID") { restId url contentType size name createdAt expiresAt } }'],
  ["deleteMedia", mutation("deleteMedia", 'id: "ID"', "deletedId")],
  // Authorization
  ["authorize", mutation("createAuthorizationRequest", 'redirectUrl: "https://example.com/callback"', "authorizationRequest { restId }")],
  [
    "createToken",
    mutation(
      "exchangeAuthorizationCode",
      'code: "CODE", redirectUrl: "https://example.com/callback", codeVerifier: "VERIFIER"',
      "token { accessToken scope expiresIn }",
    ),
  ],
  ["createDeviceCode", mutation("createDeviceAuthorization", "scope: [PROFILE]", "deviceCode userCode verificationUri interval")],
  [
    "createDeviceToken",
    mutation("redeemDeviceCode", 'deviceCode: "CODE"', "token { accessToken scope expiresIn } refusal { error interval }"),
  ],
  // Operators
  [
    "getTrialBalance",
    "{\n  trialBalance {\n    debit credit sold granted books { book opening debit credit closing movements { kind debit credit } }\n  }\n}",
  ],
  ["listSales", "{\n  sales { day processor currency purchases credits sold refunds refunded disputes disputed won writtenOff }\n}"],
  ["listMargins", "{\n  margins(by: [MODEL, UPSTREAM]) {\n    modelId upstream requests cost upstreamCost margin\n  }\n}"],
  [
    "listSpend",
    `{
  spend(by: ACCOUNT, first: 20) {
    groupCount
    total { requests }
  }
}`,
  ],
  [
    "listModelRoutes",
    "{\n  modelRoutes(first: 20) {\n    nodes { modelId routing routes { upstream keyNumber weight priority isEnabled circuit coolingDownUntil } }\n  }\n}",
  ],
  ["addRoute", mutation("addRoute", 'modelId: "MODEL", upstream: "UPSTREAM", upstreamModel: "NAME"', "warnings")],
  ["updateRoute", mutation("updateRoute", 'modelId: "MODEL", upstream: "UPSTREAM", weight: 2, isEnabled: true', "warnings")],
  ["resetRoutes", mutation("resetRoutes", 'modelId: "MODEL"', "warnings")],
  ["setRouting", mutation("setRouting", 'modelId: "MODEL", routing: LATENCY', "warnings")],
  ["listAuditLog", "{ auditLog(first: 20) { nodes { createdAt act accountId reason } pageInfo { endCursor } } }"],
]);

/** Operations of REST alone, with the reason. */
export const WITHOUT_GRAPHQL: ReadonlyMap<string, string> = new Map([
  ["rerankInVersion2", "It is `rerank` at the address of Cohere's second version."],
  ["createCompletion", "It is a chat in an older format: createChatCompletion."],
  ["compactResponse", "Its result is an item of the Responses format. A GraphQL client asks a model for a summary."],
  ["createRealtimeClientSecret", "Realtime sessions have a WebSocket of their own."],
  ["listResponseInputItems", INPUT_OVER_REST],
  ...["create", "retrieve", "update", "delete"].map((verb): [string, string] => [`${verb}Conversation`, CONVERSATIONS_OVER_REST]),
  ["listConversationItems", CONVERSATIONS_OVER_REST],
  ["createConversationItems", CONVERSATIONS_OVER_REST],
  ...["retrieve", "delete"].map((verb): [string, string] => [`${verb}ConversationItem`, CONVERSATIONS_OVER_REST]),
  ["openResponses", "GraphQL streams responses with the subscription response, also over a WebSocket."],
  ["openRealtime", "Realtime sessions have a WebSocket of their own."],
  ["takeStripeEvent", "Stripe sends its events to it."],
  ["takeCreditsWebhook", "Payment processors send their payments to it."],
  ["registerClient", "OAuth defines this endpoint for clients (RFC 7591)."],
  ["getAuthorizationServer", "OAuth defines this document (RFC 8414)."],
  ["getMcpResource", "OAuth defines this document (RFC 9728)."],
  ["getGatewayResource", "OAuth defines this document (RFC 9728)."],
  ["getMediaHost", "It describes the media host."],
  ["getService", "It describes the service."],
  ["getHealth", "Balancers and monitors request it."],
  ["getReadiness", "Balancers and monitors request it."],
  ["getMetrics", "Prometheus reads it."],
  ["getOpenApi", "It describes the REST API. /schema.graphql describes the GraphQL API."],
]);
