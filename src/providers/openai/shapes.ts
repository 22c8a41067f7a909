/** The least that an upstream's answer must be, so that whoever reads it meets no surprise: what we read has the type we name. */
import type { ChatChoice, ChatChunkChoice } from "../../lib/chat-format.js";
import { isRecord } from "./json.js";

/** A list of choices, each with a message that can be read, or none. */
export function areChoices(value: unknown): value is readonly ChatChoice[] {
  return Array.isArray(value) && value.every((choice) => isChoice(choice) && isMessage(choice.message));
}

/** A list of a chunk's choices, each with a delta that can be read, or none. */
export function areChunkChoices(value: unknown): value is readonly ChatChunkChoice[] {
  return Array.isArray(value) && value.every((choice) => isChoice(choice) && isMessage(choice.delta));
}

function isChoice(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && (value.index === undefined || Number.isInteger(value.index)) && isTextOrNothing(value.finish_reason);
}

function isMessage(value: unknown): boolean {
  if (isNothing(value)) return true;
  if (!isRecord(value)) return false;
  const { tool_calls: calls } = value;
  return isNothing(calls) || (Array.isArray(calls) && calls.every(isToolCall));
}

function isToolCall(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { function: called } = value;
  return isNothing(called) || (isRecord(called) && isTextOrNothing(called.name) && isTextOrNothing(called.arguments));
}

function isTextOrNothing(value: unknown): boolean {
  return isNothing(value) || typeof value === "string";
}

function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}
