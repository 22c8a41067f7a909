/** What each operation of the REST face is called and does, in the words of the specification. */
import { AGENT_OPERATIONS } from "./agent-operations.js";
import type { AnswerName } from "./answers.js";
import { AUTHORIZATION_OPERATIONS } from "./authorization-operations.js";
import { MY_MODEL_OPERATIONS } from "./community-model-operations.js";
import { INTEGRATION_OPERATIONS } from "./integration-operations.js";
import { SESSION_OPERATIONS } from "./session-operations.js";
import { WEBHOOK_OPERATIONS } from "./webhook-operations.js";

export const TAGS = {
  Text: "Chat completions, responses and plain text.",
  Images: "Pictures and their editing.",
  Video: "Moving pictures.",
  Audio: "Speech, music and transcriptions.",
  Embeddings: "Vectors of texts.",
  Moderation: "Judgements of texts.",
  Models: "The catalog. Open to all.",
  Account: "Profile, balance and usage. A key needs the permission that the operation names.",
  Keys: "API keys. A secret key with the permission `keys` is needed, except for the key's own data.",
  Authorization: "How an app gets a key that its user pays for.",
  Media: "Files.",
  Webhooks: "Addresses that are told what happens to the account. A secret key with the permission `keys` is needed.",
  "Connected apps": "Accounts elsewhere that a person has opened to the gateway. A secret key with the permission `keys` is needed.",
  Agents: "Prompt agents and code agents: registered models that the gateway answers for itself.",
  "Community models": "Models that the account has registered, agents among them. A secret key with the permission `keys` is needed.",
  Service: "Whether it works.",
} as const;
export type Tag = keyof typeof TAGS;

export interface Operation {
  /** The name of the function in a generated client. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Of the JSON answer. */
  readonly answer?: AnswerName;
  /** Its answer is 204. */
  readonly hasNoContent?: boolean;
  /** It becomes a WebSocket: its answer is 101, and 426 to a request without an upgrade. */
  readonly isUpgrade?: boolean;
  /** Error statuses that its kind of route does not have anyway. */
  readonly errors?: readonly string[];
  /** A status below 400 that sends whoever asks on. */
  readonly redirect?: { readonly status: "302" | "303"; readonly why: string };
  /** What else may be answered. */
  readonly contentTypes?: readonly string[];
  /** Pages and protocols that a client of the API does not call. */
  readonly isHidden?: boolean;
}

const STREAM = "text/event-stream";
const STREAMED = "With `stream: true` the answer is a stream of server-sent events.";
const IMAGES = ["image/jpeg", "image/png"];

/** By method and path template. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/chat/completions": {
    id: "createChatCompletion",
    tag: "Text",
    summary: "Answers a conversation, in OpenAI's wire format.",
    description: `${STREAMED} The last chunk before \`[DONE]\` carries the usage, and \`receipt\`, which tells what the headers of a stream cannot: who served, and where the time went. Unknown fields reach the upstream as they are, but for those that are billed: 400 names the field.`,
    answer: "ChatCompletion",
    contentTypes: [STREAM],
  },
  "POST /v1/responses": {
    id: "createResponse",
    tag: "Text",
    summary: "Answers an input in OpenAI's Responses format; nothing of it is kept.",
    description: `${STREAMED} The response in the last event carries \`receipt\`: who served, and where the time went. Tools that the model cannot have, such as \`web_search\`, are left out and named in \`X-Warnings\`; one that is forced is 400.`,
    answer: "ModelResponse",
    contentTypes: [STREAM],
  },
  "POST /text": {
    id: "createText",
    tag: "Text",
    summary: "Answers a conversation in plain text.",
    description: `The body is a chat completion's. ${STREAMED}`,
    contentTypes: ["text/plain", STREAM],
  },
  "GET /text/{prompt}": {
    id: "getText",
    tag: "Text",
    summary: "Answers a prompt in plain text.",
    contentTypes: ["text/plain", STREAM],
  },
  "GET /image/{prompt}": {
    id: "getImage",
    tag: "Images",
    summary: "Draws a picture, or makes a video when the model is a video model.",
    contentTypes: [...IMAGES, "video/mp4"],
  },
  "POST /v1/images/generations": {
    id: "createImage",
    tag: "Images",
    summary: "Draws pictures, in OpenAI's wire format.",
    answer: "Images",
  },
  "POST /v1/images/edits": {
    id: "editImage",
    tag: "Images",
    summary: "Draws a picture from others, in OpenAI's wire format.",
    answer: "Images",
  },
  "POST /v1/videos": {
    id: "createVideo",
    tag: "Video",
    summary: "Starts a video, in OpenAI's format: a generation job.",
    description: "As JSON or a form with the file `input_reference`. `seconds` is 1 to 10; every other field of GET /video is taken too.",
    answer: "Video",
  },
  "GET /v1/videos/{generation}": { id: "retrieveVideo", tag: "Video", summary: "How a video is getting on.", answer: "Video" },
  "DELETE /v1/videos/{generation}": {
    id: "deleteVideo",
    tag: "Video",
    summary: "Stops a video that is being made, and forgets it.",
    answer: "DeletedVideo",
  },
  "GET /v1/videos/{generation}/content": {
    id: "downloadVideoContent",
    tag: "Video",
    summary: "The video itself. 409 while it is being made.",
    contentTypes: ["video/mp4"],
  },
  "GET /generations/{generation}/content": {
    id: "getGenerationContent",
    tag: "Video",
    summary: "What a generation job has made.",
    description: "409 while it runs; 404 when it did not succeed, or a day after it did.",
    contentTypes: ["video/mp4", "audio/mpeg"],
  },
  "GET /video/{prompt}": {
    id: "getVideo",
    tag: "Video",
    summary: "Makes a video, or a picture when the model is an image model.",
    contentTypes: ["video/mp4", ...IMAGES],
  },
  "GET /audio/{text}": {
    id: "getAudio",
    tag: "Audio",
    summary: "Reads a text out, or makes music when the model is a music model.",
    contentTypes: ["audio/mpeg"],
  },
  "POST /v1/audio/speech": {
    id: "createSpeech",
    tag: "Audio",
    summary: "Reads a text out, in OpenAI's wire format.",
    contentTypes: ["audio/mpeg", "audio/ogg", "audio/aac", "audio/flac", "audio/wav", "audio/pcm", STREAM],
  },
  "POST /v1/audio/transcriptions": {
    id: "createTranscription",
    tag: "Audio",
    summary: "Writes down what a recording says, in OpenAI's wire format.",
    answer: "Transcription",
    contentTypes: ["text/plain", "text/vtt"],
  },
  "POST /v1/embeddings": {
    id: "createEmbeddings",
    tag: "Embeddings",
    summary: "Makes vectors of texts, in OpenAI's wire format.",
    answer: "Embeddings",
  },
  "POST /v1/moderations": {
    id: "createModeration",
    tag: "Moderation",
    summary: "Judges texts, in OpenAI's wire format.",
    answer: "Moderation",
  },
  "GET /v1/realtime": {
    id: "openRealtime",
    tag: "Audio",
    summary: "A WebSocket of OpenAI's realtime events.",
    description:
      "The key is needed as everywhere; a browser may give it as the subprotocol `openai-insecure-api-key.<key>`. A session is charged when it ends, for the usage of every response: as its upstream reports it, and counted where it does not. Credits are held while it runs, and before a response is asked for; when no more can be held, the session ends with an `error` event. Transcription of the caller's audio is charged at the price of the transcription model that `session.update` names, as a usage row of its own whose `parent_request_id` is the session's id. Other kinds of sessions than conversations, other tools than functions, and whatever else has no price are refused. After a caller has left, what is under way is cancelled, and charged as it is reported.",
    isUpgrade: true,
    errors: ["402", "403", "502", "504"],
  },
  "GET /v1/models": { id: "listOpenAiModels", tag: "Models", summary: "Text models, in OpenAI's list format.", answer: "ModelList" },
  "GET /v1/models/{id}": { id: "getOpenAiModel", tag: "Models", summary: "One model, by id or alias.", answer: "Model" },
  "GET /models": { id: "listModels", tag: "Models", summary: "Every model.", answer: "Catalog" },
  "GET /text/models": { id: "listTextModels", tag: "Models", summary: "Text models.", answer: "Catalog" },
  "GET /image/models": { id: "listImageModels", tag: "Models", summary: "Image and video models.", answer: "Catalog" },
  "GET /video/models": { id: "listVideoModels", tag: "Models", summary: "Video models.", answer: "Catalog" },
  "GET /audio/models": { id: "listAudioModels", tag: "Models", summary: "Speech, music and transcription models.", answer: "Catalog" },
  "GET /embeddings/models": { id: "listEmbeddingModels", tag: "Models", summary: "Embedding models.", answer: "Catalog" },
  "GET /account/profile": { id: "getProfile", tag: "Account", summary: "Who the account is (permission `profile`).", answer: "Profile" },
  "GET /account/balance": {
    id: "getBalance",
    tag: "Account",
    summary: "The credits that remain (permission `balance`).",
    description: "With a key that has a budget of its own, what remains of that.",
    answer: "Balance",
  },
  "GET /account/usage": {
    id: "listUsage",
    tag: "Account",
    summary: "Every request and what it cost, newest first (permission `usage`).",
    answer: "Usage",
    contentTypes: ["text/csv"],
  },
  "GET /account/usage/daily": {
    id: "listDailyUsage",
    tag: "Account",
    summary: "Requests and costs by day and model (permission `usage`).",
    answer: "UsageDaily",
    contentTypes: ["text/csv"],
  },
  "GET /account/apps/{id}/usage/daily": {
    id: "listAppDailyUsage",
    tag: "Account",
    summary: "What the users of an app have spent, by day and model (permission `usage`).",
    description: "The id is that of the app's publishable key. Nothing tells who the users are.",
    answer: "AppUsageDaily",
    contentTypes: ["text/csv"],
  },
  "GET /account/keys": { id: "listKeys", tag: "Keys", summary: "The account's keys, without their values.", answer: "ApiKeyList" },
  "POST /account/keys": { id: "createKey", tag: "Keys", summary: "Makes a key. Its value is shown this once.", answer: "CreatedApiKey" },
  "PATCH /account/keys/{id}": { id: "updateKey", tag: "Keys", summary: "Changes a key.", answer: "ApiKey" },
  "DELETE /account/keys/{id}": {
    id: "revokeKey",
    tag: "Keys",
    summary: "Revokes a key and all that descend from it, everywhere within a second.",
    answer: "RevokedApiKey",
  },
  "GET /account/key": { id: "getCurrentKey", tag: "Keys", summary: "The calling key. Any key may ask.", answer: "CurrentApiKey" },
  "GET /account/key/usage": {
    id: "listKeyUsage",
    tag: "Keys",
    summary: "The calling key's own requests. Any key may ask.",
    answer: "Usage",
    contentTypes: ["text/csv"],
  },
  "POST /account/agents/{agent}/sync": {
    id: "syncAgent",
    tag: "Agents",
    summary: "Deploys the latest commit of a code agent's repository. Open to all.",
    description: "At most once in 30 seconds for each agent. `updated` is false when that commit was deployed already.",
    answer: "SyncedAgent",
    errors: ["502", "504"],
  },
  ...AGENT_OPERATIONS,
  ...MY_MODEL_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...INTEGRATION_OPERATIONS,
  "GET /media/": { id: "getMediaHost", tag: "Media", summary: "What the media host is.", answer: "MediaHost" },
  "POST /media/upload": {
    id: "uploadMedia",
    tag: "Media",
    summary: "Stores a file of up to 10 MiB for 14 days.",
    description:
      "The body is a form with the field `file`, JSON `{ data (base64), contentType, name }`, or the file itself. Uploading it again begins the 14 days anew. JSON without `data`, `{ contentType, size, name, tags }`, is answered with an address to which a file of up to 100 MiB is sent.",
    answer: "MediaUpload",
  },
  "GET /media/{media}": {
    id: "getMedia",
    tag: "Media",
    summary: "A stored file. Open to all, and never another one under the same address.",
    redirect: { status: "302", why: "To an address of the blob store that works for five minutes: the file went straight there." },
    contentTypes: ["*/*"],
  },
  "GET /media/{media}/metadata": {
    id: "getMediaMetadata",
    tag: "Media",
    summary: "What is known of a stored file. Open to all.",
    answer: "MediaMetadata",
  },
  "POST /media/upload/{media}/complete": {
    id: "completeUpload",
    tag: "Media",
    summary: "Makes a file that was sent to an upload's address one that can be read.",
    description: "409 when nothing has arrived yet, 400 when it is something else than was announced.",
    answer: "MediaObject",
  },
  "GET /media/media": {
    id: "listMedia",
    tag: "Media",
    summary: "Files with a tag, newest first; without one, the account's own tagged files, which needs a key.",
    answer: "MediaList",
  },
  "DELETE /media/media/{media}": {
    id: "deleteMedia",
    tag: "Media",
    summary: "Deletes a tagged file of the account. Needs a secret key.",
    answer: "DeletedMedia",
  },
  "PUT /media/blobs/{folder}/{name}": {
    id: "putBlob",
    tag: "Media",
    summary: "One upload, at an address that was signed.",
    isHidden: true,
  },
  "GET /media/blobs/{folder}/{name}": { id: "getBlob", tag: "Media", summary: "A file, at an address that was signed.", isHidden: true },
  ...AUTHORIZATION_OPERATIONS,
  "POST /api/device/code": {
    id: "createDeviceCode",
    tag: "Authorization",
    summary: "Begins to connect a device (RFC 8628).",
    description: "`client_id` is an app key; `scope` holds permissions: profile, balance, usage. Show the user code, and poll for the key.",
    answer: "DeviceCode",
  },
  "POST /api/device/token": {
    id: "createDeviceToken",
    tag: "Authorization",
    summary: "The key of a device, once somebody has allowed it.",
    description: "Until then 400 with the error `authorization_pending`; wait the interval between two polls. A device code works once.",
    answer: "Token",
  },
  "GET /api/device/userinfo": {
    id: "getUserInfo",
    tag: "Authorization",
    summary: "Whose key this is, as OpenID Connect tells it. Any key may ask.",
    description: "`name` and `email` with the permission `profile` only.",
    answer: "UserInfo",
  },
  "GET /device": { id: "getDevicePage", tag: "Authorization", summary: "Where a person types a user code.", isHidden: true },
  "POST /device": { id: "postDevicePage", tag: "Authorization", summary: "What asks with this user code.", isHidden: true },
  "POST /device/decision": { id: "postDeviceDecision", tag: "Authorization", summary: "Allows or denies it.", isHidden: true },
  "GET /": { id: "getService", tag: "Service", summary: "What this is, and where everything is.", answer: "Service" },
  "GET /healthz": { id: "getHealth", tag: "Service", summary: "Answers while the process lives.", answer: "Status" },
  "GET /readyz": { id: "getReadiness", tag: "Service", summary: "Answers when generations can be served.", answer: "Status" },
  "GET /metrics": {
    id: "getMetrics",
    tag: "Service",
    summary: "How the gateway does, in Prometheus's text format.",
    description:
      "Asked for with the operator's METRICS_TOKEN as bearer token, and with no API key. Without such a token set, anybody reads them where only the machine itself can ask, and nobody elsewhere: 404.",
    contentTypes: ["text/plain"],
    errors: ["404"],
  },
  "GET /openapi.json": { id: "getOpenApi", tag: "Service", summary: "This description.", answer: "OpenApi" },
  "GET /docs": { id: "getReference", tag: "Service", summary: "This description as a page.", isHidden: true },
  ...SESSION_OPERATIONS,
  "GET /docs/{asset}": { id: "getReferenceAsset", tag: "Service", summary: "What the page is made of.", isHidden: true },
};
