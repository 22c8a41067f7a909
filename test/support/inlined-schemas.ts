/** The OpenAPI document with its named schemas in place of the references to them. */
import type { OpenApiDocument } from "../../src/rest/openapi/document.js";

const NAMED = "#/components/schemas/";

export function inlineSchemas(document: OpenApiDocument): OpenApiDocument {
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline);
    if (typeof value !== "object" || value === null) return value;
    const { $ref, ...own } = value as Readonly<Record<string, unknown>>;
    const inner = Object.fromEntries(Object.entries(own).map(([name, each]) => [name, inline(each)]));
    if (typeof $ref !== "string" || !$ref.startsWith(NAMED)) return $ref === undefined ? inner : { $ref, ...inner };
    return { ...(inline(document.components.schemas[$ref.slice(NAMED.length)]) as object), ...inner };
  };
  return inline(document) as OpenApiDocument;
}
