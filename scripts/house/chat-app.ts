/** A gateway on an embedded database with an upstream beside it, in this process, that has answered a few chats: ready and warm. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { createApp } from "../../src/app.js";
import { parseConfig } from "../../src/config/config.js";
import { startFakeUpstream } from "../../test/support/fake-upstream.js";

const KEY = "sk_OwnerOfAllTests0123456789abcdefghijkl1q7bOw";
const WARM_UP_CHATS = 30;

export interface ChatApp {
  /** One JSON chat, to its end. */
  chat(): Promise<void>;
  /** One GraphQL operation, to its end. */
  query(document: string): Promise<void>;
  close(): Promise<void>;
}

export async function startChatApp(): Promise<ChatApp> {
  const upstream = await startFakeUpstream();
  const dataDir = await mkdtemp(join(tmpdir(), "sluice-house-"));
  const models = {
    upstreams: [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }],
    models: [
      {
        ...{ id: "acme/chat", modality: "text", upstream: "acme", upstreamModel: "chat", title: "Chat" },
        prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000002" },
      },
    ],
  };
  const modelsFile = join(dataDir, "models.json");
  await writeFile(modelsFile, JSON.stringify(models));
  const env = { PORT: "0", DATA_DIR: dataDir, MODELS_FILE: modelsFile, OWNER_API_KEY: KEY, ACME_KEY: "acme-secret-key" };
  const app = await createApp({ ...parseConfig(env), databaseUrl: null }, pino({ level: "silent" }));
  const post = async (path: string, body: object) => {
    const response = await fetch(`http://127.0.0.1:${app.addresses.port}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok || text.includes('"errors"')) throw new Error(`${path} answered ${response.status}: ${text}`);
  };
  const chat = () => post("/v1/chat/completions", { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] });
  for (let chats = 0; chats < WARM_UP_CHATS; chats++) await chat();
  return {
    chat,
    query: (query) => post("/graphql", { query }),
    close: async () => {
      await app.close();
      await upstream.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
