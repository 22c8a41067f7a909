/** The list of models in Anthropic's format. */

interface ListedModel {
  readonly id: string;
  readonly title: string;
  readonly addedAt: Date;
}

/** A page of models in Anthropic's format. */
export interface AnthropicModelPage {
  readonly data: readonly { readonly type: "model"; readonly id: string; readonly display_name: string; readonly created_at: string }[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

export function toAnthropicModel({ id, title, addedAt }: ListedModel): AnthropicModelPage["data"][number] {
  return { type: "model", id, display_name: title, created_at: addedAt.toISOString() };
}

/** An unknown id of a page begins or ends nothing, as if it had not been sent. */
export function toAnthropicModelPage(
  models: readonly ListedModel[],
  { limit, afterId, beforeId }: { readonly limit: number; readonly afterId?: string | undefined; readonly beforeId?: string | undefined },
): AnthropicModelPage {
  const start = afterId === undefined ? 0 : models.findIndex(({ id }) => id === afterId) + 1;
  const before = beforeId === undefined ? -1 : models.findIndex(({ id }) => id === beforeId);
  const rest = before === -1 ? models.slice(start) : models.slice(0, before);
  const page = before === -1 ? rest.slice(0, limit) : rest.slice(-limit);
  const data = page.map(toAnthropicModel);
  return { data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: rest.length > page.length };
}
