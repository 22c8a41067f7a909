/** The list of models in Gemini's format. */

interface ListedModel {
  readonly id: string;
  readonly title: string;
  readonly description: string | null;
  readonly modality: string;
  readonly contextLength: number | null;
  readonly maxOutputTokens: number | null;
  readonly capabilities: readonly string[];
}

export interface GeminiModel {
  readonly name: string;
  readonly version: string;
  readonly displayName: string;
  readonly description?: string;
  readonly inputTokenLimit?: number;
  readonly outputTokenLimit?: number;
  readonly supportedGenerationMethods: readonly string[];
  readonly thinking?: true;
}

export interface GeminiModelPage {
  readonly models: readonly GeminiModel[];
  readonly nextPageToken?: string;
}

const PREFIX = "models/";
const OF_TEXT = ["generateContent", "streamGenerateContent", "countTokens"];
const OF_EMBEDDINGS = ["embedContent", "batchEmbedContents"];

/** Names in paths and bodies may begin with `models/`. */
export function toModelId(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

export function toGeminiModel(model: ListedModel): GeminiModel {
  const { id, title, description, modality, contextLength, maxOutputTokens, capabilities } = model;
  return {
    name: PREFIX + id,
    version: "",
    displayName: title,
    ...(description !== null && { description }),
    ...(contextLength !== null && { inputTokenLimit: contextLength }),
    ...(maxOutputTokens !== null && { outputTokenLimit: maxOutputTokens }),
    supportedGenerationMethods: modality === "embedding" ? OF_EMBEDDINGS : OF_TEXT,
    ...(capabilities.includes("reasoning") && { thinking: true as const }),
  };
}

/** The page behind the model of that id; an unknown one begins at the start. */
export function toGeminiModelPage(models: readonly ListedModel[], pageSize: number, pageToken: string | undefined): GeminiModelPage {
  const start = pageToken === undefined ? 0 : models.findIndex(({ id }) => id === pageToken) + 1;
  const page = models.slice(start, start + pageSize);
  const last = page.at(-1);
  const isMore = last !== undefined && start + page.length < models.length;
  return { models: page.map(toGeminiModel), ...(isMore && { nextPageToken: last.id }) };
}
