/**
 * Complete example requests of every operation, which succeed on a new gateway with the owner's key and its sandbox models. "Try it
 * out" at /docs shows them, and `test/contract/openapi.test.ts` sends all of them. IDs of keys or webhooks must be filled in. URLs
 * that are fetched use example.com, which exists.
 */

export interface Example {
  /** JSON, or fields of a urlencoded form. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Text fields of a multipart form. Files must be selected by hand. */
  readonly form?: Readonly<Record<string, unknown>>;
  /** Values by parameter name. */
  readonly parameters?: Readonly<Record<string, string | number>>;
}

const HELLO = [{ role: "user", content: "Hello!" }];
const MILL = "A mill by a river";
/** A complete PNG of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/** The ID of the pixel after its upload. */
export const PIXEL_ID = "497790947d466676";
const REGISTERED = { name: "my-model", title: "My model", api: "chat_completions", url: "https://example.com/v1/chat/completions" };

export const EXAMPLES: Readonly<Record<string, Example>> = {
  "POST /v1/chat/completions": { body: { model: "sandbox/text", messages: HELLO } },
  "POST /v1/responses": { body: { model: "sandbox/text", input: "Hello!" } },
  "POST /text": { body: { model: "sandbox/text", messages: HELLO } },
  "GET /text/{prompt}": { parameters: { prompt: "Hello!", model: "sandbox/text" } },
  "GET /image/{prompt}": { parameters: { prompt: MILL, model: "sandbox/image" } },
  "GET /video/{prompt}": { parameters: { prompt: MILL, model: "sandbox/video", duration: 1 } },
  "GET /audio/{text}": { parameters: { text: "Hello!", model: "sandbox/speech" } },
  "POST /v1/images/generations": { body: { model: "sandbox/image", prompt: MILL, size: "256x256" } },
  "POST /v1/images/edits": {
    body: { model: "sandbox/image", prompt: "At night", image: `data:image/png;base64,${PIXEL}`, size: "256x256" },
    form: { model: "sandbox/image", prompt: "At night", size: "256x256" },
  },
  "POST /v1/videos": {
    body: { model: "sandbox/video", prompt: MILL, seconds: "1", size: "256x256" },
    form: { model: "sandbox/video", prompt: MILL, seconds: "1", size: "256x256" },
  },
  "POST /v1/audio/speech": { body: { model: "sandbox/speech", input: "Hello!", voice: "alloy", response_format: "mp3" } },
  "POST /v1/audio/transcriptions": { form: { model: "sandbox/transcription", response_format: "json" } },
  "POST /v1/embeddings": { body: { model: "sandbox/embedding", input: "A mill by a river" } },
  "POST /v1/moderations": { body: { model: "sandbox/moderation", input: "A mill by a river" } },
  "GET /v1/models/{id}": { parameters: { id: "sandbox/text" } },
  "POST /account/keys": {
    body: { name: "My app", type: "secret", allowedModels: ["sandbox/text"], creditBudget: 5, expiresIn: 2_592_000 },
  },
  "PATCH /account/keys/{id}": { body: { name: "My app", creditBudget: 10 } },
  "PATCH /account/profile": { body: { name: "Ada" } },
  "PATCH /account/balance/threshold": { body: { threshold: 1 } },
  "POST /account/webhooks": { body: { url: "https://example.com/sluice", events: ["balance.low"] } },
  "PATCH /account/webhooks/{webhook}": { body: { isEnabled: true } },
  "POST /account/my-models": {
    body: { ...REGISTERED, upstreamModel: "my-model-1", bearerToken: "my-upstream-key", promptTextPrice: 0.000001 },
  },
  "POST /account/my-models/endpoint-agents": { body: { ...REGISTERED, name: "my-endpoint", title: "My endpoint" } },
  "POST /account/my-models/test": { body: { api: REGISTERED.api, url: REGISTERED.url, upstreamModel: "my-model-1" } },
  "PATCH /account/my-models/{communityModel}": { body: { title: "My own model" } },
  "POST /account/my-models/{communityModel}/update": { body: { title: "My own model" } },
  "POST /account/agents": {
    body: { name: "haiku", title: "Haiku", systemPrompt: "Answer with a haiku.", baseModel: "sandbox/text" },
  },
  "PATCH /account/agents/{agent}": { body: { title: "Haiku, and nothing else" } },
  "POST /account/integrations": { body: { toolkit: "notes" } },
  "POST /media/upload": { body: { data: PIXEL, contentType: "image/png", name: "pixel.png" }, form: {} },
  "GET /media/{media}": { parameters: { media: PIXEL_ID } },
  "GET /media/{media}/metadata": { parameters: { media: PIXEL_ID } },
  "GET /authorize": { parameters: { redirect_url: "https://example.com/callback" } },
  "POST /api/device/code": { body: { scope: "profile balance" } },
  "POST /api/device/token": { body: { device_code: "The device_code of POST /api/device/code" } },
  "POST /api/oauth/token": {
    body: { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code: "The device_code of POST /api/device/code" },
  },
};
