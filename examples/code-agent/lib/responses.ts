/** Helpers for the Responses format: reading the input, and writing an answer. */
import type { ResponsesRequest } from "../sluice.d.ts";

/** Returns the text of the last user message. */
export function lastWords({ input }: ResponsesRequest): string {
  if (typeof input === "string") return input;
  const content = input.filter(({ role }) => role === "user").at(-1)?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

/** Builds an answer without calling a model. */
export function say(model: string, text: string): Response {
  return Response.json({
    id: `resp_${crypto.randomUUID()}`,
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status: "completed",
    model,
    output: [
      {
        id: `msg_${crypto.randomUUID()}`,
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    ],
  });
}
