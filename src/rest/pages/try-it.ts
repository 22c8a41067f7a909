/** A command that somebody can paste to see that a new key works. */
import type { Model } from "../../services/catalog/model.js";

/** Free, and there unless the operator says otherwise. */
const SANDBOX = "sandbox/text";

/** Asks a model that the key may use, the sandbox's where that is one. A key for no model of text is asked what it is. */
export function commandFor(
  key: string,
  allowedModels: readonly string[] | null,
  models: readonly Pick<Model, "id" | "modality">[],
  baseUrl: string,
): string {
  const usable = models.filter(({ id, modality }) => modality === "text" && (allowedModels === null || allowedModels.includes(id)));
  const model = usable.find(({ id }) => id === SANDBOX) ?? usable[0];
  const authorization = `-H "Authorization: Bearer ${key}"`;
  if (!model) return `curl ${baseUrl}/account/key ${authorization}`;
  const body = JSON.stringify({ model: model.id, messages: [{ role: "user", content: "Hello!" }] });
  return `curl ${baseUrl}/v1/chat/completions ${authorization} -H "Content-Type: application/json" -d '${body}'`;
}
