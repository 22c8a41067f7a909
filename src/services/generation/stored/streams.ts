import type { ResponseObject } from "../../../formats/openai-responses/answer.js";
import type { ResponseEvent } from "../../../formats/openai-responses/stream.js";
import type { SafetyReport } from "../../safety/safety.js";
import type { ResponseStream } from "../chat/responses.js";

/** Of a stream that has begun. */
export async function safetyOf({ opened }: Pick<ResponseStream, "opened">): Promise<SafetyReport | null> {
  return (await opened.catch(() => null))?.safety ?? null;
}

export function finishedIn({ type, response }: ResponseEvent): ResponseObject | null {
  return type === "response.completed" || type === "response.incomplete" ? (response as ResponseObject) : null;
}

/** An event without the fields of the request that a safety feature may redact. */
export function withoutTexts(event: ResponseEvent): ResponseEvent {
  const { response } = event;
  return response === undefined ? event : { ...event, response: withoutInput(response as ResponseObject) };
}

export function withoutInput(response: ResponseObject): ResponseObject {
  return { ...response, instructions: null, metadata: {} };
}
