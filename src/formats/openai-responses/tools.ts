/**
 * The tools of a Responses request in a chat. Functions are unchanged; tools that take plain text (`custom`) become functions with one
 * text, because few upstreams support them. Other types are run by vendors: clients offer such tools unasked, so they are left out with a
 * warning (docs/spec/chat.md#responses), and no upstream gets them unless the model's entry has a price for them. A request that requires
 * one is refused. Tools of a group (`namespace`) are offered one by one, under a name that joins both.
 */
import { createHash } from "node:crypto";
import { invalidInput } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { quoteStart } from "../../lib/quote-start.js";
import { UPSTREAM_JSON_BOUNDS } from "../../limits.js";
import type { ResponseCustomTool, ResponseFunctionTool, ResponseInput, ResponseNamespaceTool, ResponseTool } from "./request.js";

type Fields = Readonly<Record<string, unknown>>;

/** The model that answers, and those that may answer in its place. */
export interface ResponseTarget {
  /** All of them speak the Responses format, and so know custom tools. */
  readonly isNative: boolean;
  /** The model's entry has a price for a vendor's own tool of this type. */
  readonly isBilled: (type: string) => boolean;
}

export interface OfferedTools {
  readonly kept: readonly ResponseTool[];
  /** Null when there are none. */
  readonly tools: readonly Fields[] | null;
  readonly choice: unknown;
  readonly warnings: readonly string[];
}

const HOSTED = "a vendor runs and bills it, and this model has no price for it";
const BUILT_IN = "only models of one vendor know it; offer a tool of type function or custom that does the same";
const SEARCHED = "all tools are offered at once here, so there is nothing to search";
const UNKNOWN = "no such type is known here; there are function, custom and namespace";

/** Types of OpenAI's Responses format, without the date suffix of some. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ..."web_search web_search_preview file_search code_interpreter image_generation mcp".split(" ").map((type) => [type, HOSTED] as const),
  ..."computer computer_use computer_use_preview local_shell shell apply_patch".split(" ").map((type) => [type, BUILT_IN] as const),
  ..."tool_search programmatic_tool_calling".split(" ").map((type) => [type, SEARCHED] as const),
]);
const DATE = /_\d{4}_\d{2}_\d{2}$/;
/** Characters of a client's text in a warning, and types that it names. */
const TYPE_CHARS_MAX = 64;
const TYPES_TOLD_MAX = 12;

/** Throws BAD_REQUEST when the request requires a tool that is not offered. */
export function offerTools({ tools, tool_choice: asked }: ResponseInput, { isBilled, isNative }: ResponseTarget): OfferedTools {
  const given = flatten(tools ?? []);
  const isKept = ({ tool }: FlatTool) => isFunction(tool) || isCustom(tool) || isBilled(tool.type);
  const kept = given.filter(isKept).map(({ tool }) => tool);
  const left = given.filter((each) => !isKept(each)).map(({ tool }) => tool);
  const choice = joinChoice(asked, tools ?? []);
  assertChoice(choice, kept, left);
  const offered = narrowed(choice, kept);
  return {
    kept: [...new Set(given.filter(isKept).map(({ stated }) => stated))],
    tools: offered.length > 0 ? offered.map((tool) => toChatTool(tool, isNative)) : null,
    choice: offered.length > 0 ? toChatChoice(choice, kept, isNative) : null,
    warnings: explain(left),
  };
}

/** Names of custom tools as the chat has them, in either form. */
export function customNames(tools: readonly ResponseTool[]): ReadonlySet<string> {
  return new Set(flatten(tools).flatMap(({ tool }) => (isCustom(tool) ? [tool.name] : [])));
}

// Groups of tools: OpenAI's `namespace`, in which clients offer the tools of each MCP server.

/** A tool's name as the caller gave it. */
export interface SplitName {
  readonly name: string;
  readonly namespace?: string;
}

interface FlatTool {
  /** Under its name in the chat. */
  readonly tool: Exclude<ResponseTool, ResponseNamespaceTool>;
  /** As the caller sent it: the tool, or its group. */
  readonly stated: ResponseTool;
}

/** The longest name that OpenAI accepts for a tool, and the part of it that tells cut names apart. */
const NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;

/** The chat's name of a tool in a group; the same for each request, so that histories keep their names. */
export function joinName({ namespace, name }: { readonly namespace?: string | null | undefined; readonly name: string }): string {
  if (namespace == null || namespace === "") return name;
  const joined = `${namespace}__${name}`;
  if (joined.length <= NAME_CHARS_MAX) return joined;
  const hash = createHash("sha256").update(`${namespace}\0${name}`).digest("hex").slice(0, HASH_CHARS);
  return `${joined.slice(0, NAME_CHARS_MAX - HASH_CHARS - 1)}_${hash}`;
}

/** The caller's names of tools in groups, by their names in the chat. */
export function splitNames(tools: readonly ResponseTool[]): ReadonlyMap<string, SplitName> {
  const names = new Map<string, SplitName>();
  for (const group of tools.filter(isNamespace)) {
    for (const { name } of group.tools.filter(isNamed)) {
      names.set(joinName({ namespace: group.name, name }), { name, namespace: group.name });
    }
  }
  return names;
}

function flatten(tools: readonly ResponseTool[]): readonly FlatTool[] {
  return tools.flatMap((stated): FlatTool[] => {
    if (!isNamespace(stated)) return [{ tool: stated, stated }];
    return stated.tools.map((tool) => ({
      tool: isNamed(tool) ? { ...tool, name: joinName({ namespace: stated.name, name: tool.name }) } : tool,
      stated,
    }));
  });
}

/** A choice by the chat's names; a whole group is allowed by its own name. */
function joinChoice(choice: Choice, tools: readonly ResponseTool[]): Choice {
  if (choice == null || typeof choice === "string") return choice;
  if (choice.type !== "allowed_tools" || !Array.isArray(choice.tools)) return joinEntry(choice);
  const groups = new Map(tools.filter(isNamespace).map((group) => [group.name, group]));
  const allowed = choice.tools.filter(isRecord).flatMap((entry): Fields[] => {
    const group = entry.type === "namespace" ? groups.get(String(entry.name)) : undefined;
    return group ? flatten([group]).map(({ tool }) => tool) : [joinEntry(entry)];
  });
  return { ...choice, tools: allowed };
}

function joinEntry<Entry extends Fields>(entry: Entry): Entry {
  const { namespace, name } = entry;
  if (typeof namespace !== "string" || typeof name !== "string") return entry;
  return { ...entry, name: joinName({ namespace, name }) };
}

function isNamespace(tool: Fields): tool is ResponseNamespaceTool {
  return tool.type === "namespace";
}

function isNamed(tool: Fields): tool is ResponseFunctionTool | ResponseCustomTool {
  return isFunction(tool) || isCustom(tool);
}

/** Converts a custom tool's input to arguments of its function, and back. */
export function wrapInput(input: string): string {
  return JSON.stringify({ input });
}

export function unwrapInput(given: string): string {
  try {
    const { input } = Object(new BoundedJson(UPSTREAM_JSON_BOUNDS).parse(given)) as { readonly input?: unknown };
    return typeof input === "string" ? input : given;
  } catch {
    return given;
  }
}

function isFunction(tool: Fields): tool is ResponseFunctionTool {
  return tool.type === "function";
}

function isCustom(tool: Fields): tool is ResponseCustomTool {
  return tool.type === "custom";
}

type Choice = ResponseInput["tool_choice"];

function assertChoice(choice: Choice, kept: readonly ResponseTool[], left: readonly ResponseTool[]): void {
  const leftOut = left.length > 0 ? ` Left out were: ${typesOf(left)}.` : "";
  if (choice === "required" && kept.length === 0)
    throw invalidInput(`required: there is no tool that could be called.${leftOut}`, "tool_choice");
  if (choice == null || typeof choice === "string") return;
  if (choice.type === "allowed_tools") {
    if (choice.mode !== "required" || narrowed(choice, kept).length > 0) return;
    throw invalidInput(`None of the allowed tools is offered here.${leftOut}`, "tool_choice");
  }
  if (kept.some((tool) => isMeant(choice, tool))) return;
  const meant = quoteStart(typeof choice.name === "string" ? `${choice.type} ${choice.name}` : choice.type, TYPE_CHARS_MAX);
  throw invalidInput(
    `${JSON.stringify(meant)} is forced but not offered.${leftOut} Send "auto", or one of the tools that are offered.`,
    "tool_choice",
  );
}

/** Functions and custom tools are matched by name, others by type. */
function isMeant({ type, name }: Fields, tool: ResponseTool): boolean {
  return tool.type === type && ((!isFunction(tool) && !isCustom(tool)) || tool.name === name);
}

/** Applies `allowed_tools` by offering only those. */
function narrowed(choice: Choice, kept: readonly ResponseTool[]): readonly ResponseTool[] {
  if (choice == null || typeof choice === "string" || choice.type !== "allowed_tools" || !Array.isArray(choice.tools)) return kept;
  const allowed: readonly Fields[] = choice.tools.filter(isRecord);
  return kept.filter((tool) => allowed.some((each) => isMeant(each, tool)));
}

function toChatTool(tool: ResponseTool, isNative: boolean): Fields {
  if (isFunction(tool)) {
    const { type, ...definition } = tool;
    return { type, function: withoutNulls(definition) };
  }
  if (!isCustom(tool)) return tool;
  const { name, description, format } = tool;
  if (isNative) return { type: "custom", custom: withoutNulls({ name, description, format: toChatFormat(format) }) };
  const parameters = {
    type: "object",
    properties: { input: { type: "string", description: "All that the tool is given, as plain text." } },
    required: ["input"],
    additionalProperties: false,
  };
  return {
    type: "function",
    function: { name, description: [description, describeFormat(format)].filter(Boolean).join("\n\n"), parameters },
  };
}

/** A chat has the grammar in a nested object. */
function toChatFormat(format: ResponseCustomTool["format"]): unknown {
  if (format?.type !== "grammar") return format;
  const { type, ...grammar } = format;
  return { type, grammar };
}

function describeFormat(format: ResponseCustomTool["format"]): string {
  if (format?.type !== "grammar" || typeof format.definition !== "string") return "";
  return `The input must match this ${typeof format.syntax === "string" ? format.syntax : ""} grammar:\n${format.definition}`;
}

function toChatChoice(choice: Choice, kept: readonly ResponseTool[], isNative: boolean): unknown {
  if (choice == null || typeof choice === "string") return choice;
  if (choice.type === "allowed_tools") return choice.mode === "required" ? "required" : "auto";
  const { name } = choice;
  if (choice.type === "function" || (choice.type === "custom" && !isNative)) return { type: "function", function: { name } };
  if (choice.type === "custom") return { type: "custom", custom: { name } };
  return kept.length > 0 ? choice : null;
}

/** One sentence per reason. */
function explain(left: readonly ResponseTool[]): readonly string[] {
  const byReason = new Map<string, ResponseTool[]>();
  for (const tool of left) {
    const reason = REASONS.get(tool.type.slice(0, TYPE_CHARS_MAX).replace(DATE, "")) ?? UNKNOWN;
    const alike = byReason.get(reason);
    if (alike) alike.push(tool);
    else byReason.set(reason, [tool]);
  }
  return [...byReason].map(([reason, alike]) => `tools: ${typesOf(alike)} left out: ${reason}.`);
}

function typesOf(tools: readonly ResponseTool[]): string {
  const types = [...new Set(tools.map(({ type }) => quoteStart(type, TYPE_CHARS_MAX)))];
  const more = types.length - TYPES_TOLD_MAX;
  return types.slice(0, TYPES_TOLD_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

export function withoutNulls(fields: Fields): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}
