/** The two ends of the Responses format: what was said, and an answer of one's own. */
import type { ResponsesRequest } from "../sluice.d.ts";

/** The text of the last thing that the user said. */
export function lastWords({ input }: ResponsesRequest): string {
  if (typeof input === "string") return input;
  const content = input.filter(({ role }) => role === "user").at(-1)?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
}

/** An answer that no model was asked for. */
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
