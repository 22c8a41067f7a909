/** Fields of a Messages request that an upstream of the same format gets as they are, if they change no price. */

import { isRecord, recordsOf } from "../../lib/json.js";
import { listed } from "../left-out.js";
import { isClientTool, toExtra } from "./extra.js";
import type { MessageCountRequest } from "./request.js";
import { toBetas } from "./upstream-options.js";

type Loose = Readonly<Record<string, unknown>>;

export interface NativeTarget {
  /** Values of the caller's `anthropic-beta`. */
  readonly betas: readonly string[];
  /** The model has prices for prompts beyond its usual context. */
  readonly hasLongContext: boolean;
}

interface OwnOptions {
  readonly options: Loose;
  readonly warnings: readonly string[];
}

/** Fields that are read here. */
export const OWN_OPTIONS: ReadonlySet<string> = new Set(["context_management", "cache_control", "thinking", "output_config", "metadata"]);

/** Features that change neither the price nor the place of the computation; their names go on with a date. */
const FREE_BETAS =
  /^(?:claude-code|interleaved-thinking|context-management|mid-conversation-tool-changes|mid-conversation-system|thinking-token-count|advanced-tool-use|effort|per-turn-control|prompt-caching-scope|prompt-caching|extended-cache-ttl|fine-grained-tool-streaming|token-efficient-tools|token-counting|structured-outputs|computer-use|pdfs|search-results|output-128k|output-300k|dev-full-thinking|redact-thinking|tool-examples|tool-search-tool|context-editing|model-context-window-exceeded|oauth)-(?:\d{8}|\d{4}-\d{2}-\d{2})$/;
const LONG_CONTEXT_BETA = /^context-1m-\d{4}-\d{2}-\d{2}$/;
/** Edits that only leave parts of the history out. */
const FREE_EDIT = /^clear_[a-z_]{1,40}_\d{8}$/;

/** Whether a value of `anthropic-beta` leaves the price of this model as it is. */
export function isFreeBeta(name: unknown, { hasLongContext }: Pick<NativeTarget, "hasLongContext">): boolean {
  return typeof name === "string" && (FREE_BETAS.test(name) || (hasLongContext && LONG_CONTEXT_BETA.test(name)));
}

const OUTPUT_FIELDS: ReadonlySet<string> = new Set(["effort", "format", "task_budget"]);

export function isFreeOutput(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).every((name) => OUTPUT_FIELDS.has(name));
}

/** Whether edits of the context, as the format states them, change no price. */
export function areFreeEdits(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { edits, ...others } = value;
  return Object.keys(others).length === 0 && Array.isArray(edits) && edits.every(isFreeEdit);
}

export function toOwnOptions(input: MessageCountRequest & Loose, { betas, hasLongContext }: NativeTarget): OwnOptions {
  const warnings: string[] = [];
  const { thinking, output_config: output, metadata, context_management: edits, cache_control: cache } = input;
  const free = toBetas(betas).filter((name) => isFreeBeta(name, { hasLongContext }));
  const lost = betas.filter((name) => !free.includes(name));
  if (lost.length > 0) warnings.push(`anthropic-beta: ${listed(lost)}: left out, because it is not known to leave the price as it is.`);
  const options = {
    ...(thinking != null && { thinking }),
    ...(isRecord(output) && { output_config: Object.fromEntries(Object.entries(output).filter(([name]) => OUTPUT_FIELDS.has(name))) }),
    ...(isRecord(metadata) && typeof metadata.user_id === "string" && { metadata: { user_id: metadata.user_id } }),
    ...(isRecord(cache) && { cache_control: cache }),
    ...contextEdits(edits, warnings),
    ...(free.length > 0 && { betas: free }),
  };
  return { options, warnings };
}

function contextEdits(stated: unknown, warnings: string[]): Loose {
  if (!isRecord(stated)) return {};
  const edits = recordsOf(stated.edits);
  const free = edits.filter(isFreeEdit);
  if (free.length < edits.length) {
    const types = edits.filter((edit) => !isFreeEdit(edit)).map(({ type }) => String(type));
    warnings.push(`context_management: edits of type ${listed(types)} were left out: they are billed apart.`);
  }
  return free.length > 0 ? { context_management: { edits: free } } : {};
}

function isFreeEdit(edit: unknown): boolean {
  return isRecord(edit) && typeof edit.type === "string" && FREE_EDIT.test(edit.type);
}

/**
 * A tool that Anthropic describes, as a function that the client runs; or one that Anthropic runs, whose type the catalog refuses without
 * a price.
 */
export function toNativeTool(raw: Loose & { readonly type: string }): Record<string, unknown> {
  if (!isClientTool(raw.type)) return { ...raw };
  const name = typeof raw.name === "string" ? raw.name : raw.type;
  return { type: "function", function: { name, parameters: { type: "object" } }, ...toExtra({ client_tool: raw }) };
}
