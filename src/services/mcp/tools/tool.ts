/** The form of the gateway's tools, and the common parts of their results. */
import type * as z from "zod";
import type { RequestContext } from "../../../context.js";
import { toCreditsNumber } from "../../../lib/money.js";
import { USAGE_KINDS } from "../../../lib/usage.js";
import type { Receipt } from "../../generation/receipt.js";
import type { McpToolResult } from "../mcp-tools.js";

export interface Progress {
  /** Increases with each report. */
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export type Report = (progress: Progress) => void;

export interface GatewayTool<Input = unknown> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** An object, with the bounds and schemas of the REST routes. */
  readonly input: z.ZodType<Input>;
  /** It changes nothing and costs nothing. */
  readonly isReadOnly: boolean;
  /** `report` is null when the client requested no progress. */
  call(ctx: RequestContext, input: Input, report: Report | null): Promise<McpToolResult>;
}

type Nullish<Schema extends z.ZodType> = z.ZodOptional<z.ZodNullable<Schema>>;

/** A field of a REST body for a tool: many models and clients cannot read a schema with alternatives. */
export function optional<Schema extends z.ZodType>(schema: Nullish<Schema>, description: string): z.ZodOptional<Schema> {
  return schema.unwrap().unwrap().describe(description).optional();
}

export const model = (schema: Nullish<z.ZodString>) =>
  optional(schema, "A model name or alias, as in list_models. Defaults to the default model.");
export const DELIVERIES = ["inline", "url"] as const;

/** The values that REST returns in headers. */
export function toReceiptJson(receipt: Receipt): Record<string, unknown> {
  const { generationId, model: requestedModel, modelUsed, upstream, costNanocredits, usage, warnings, safety } = receipt;
  const used = USAGE_KINDS.filter((kind) => usage[kind] !== 0).map((kind) => [toColumn(kind), usage[kind] / (isTime(kind) ? 1000 : 1)]);
  return {
    generation_id: generationId,
    model: requestedModel,
    model_used: modelUsed,
    ...(upstream !== null && { upstream }),
    cost_usd: toCreditsNumber(costNanocredits),
    usage: Object.fromEntries(used),
    ...(warnings.length > 0 && { warnings }),
    ...(safety && { safety_applied: safety.applied, safety_redacted: safety.redacted }),
  };
}

const isTime = (kind: string) => kind.endsWith("Milliseconds");

/** `inputTextTokens` is the column `input_text_tokens`; times are in seconds. */
function toColumn(kind: string): string {
  return kind.replace(/Milliseconds$/, "Seconds").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function textBlock(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}
