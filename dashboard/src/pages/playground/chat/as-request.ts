/** A chat as programs ask for it. */
import type { ChatCompletionInput, ChatMessageInput } from "../../../client/generated/graphql.js";
import { type Request, wireNames } from "../snippets.js";

export function chatRequest(input: ChatCompletionInput): Request {
  const { messages, tools, ...rest } = input;
  return {
    path: "/v1/chat/completions",
    body: {
      ...wireNames({ ...rest }, ["reasoningEffort"]),
      messages: messages.map(toWire),
      ...(tools && {
        tools: tools.map(({ function: { isStrict, ...given } }) => ({
          type: "function",
          function: { ...given, ...(typeof isStrict === "boolean" && { strict: isStrict }) },
        })),
      }),
    },
    sdk: { method: "chat.completions.create" },
    graphql: {
      field: "createChatCompletion",
      type: "ChatCompletionInput",
      selection: "completion { choices { message { content toolCalls { id function { name arguments } } } } } receipt { cost }",
      input: { ...input },
    },
    print: { python: "print(answer.choices[0].message)", node: "console.log(answer.choices[0].message);" },
  };
}

function toWire({ role, content, toolCalls, toolCallId }: ChatMessageInput) {
  return {
    role: role.toLowerCase(),
    ...(content !== undefined && { content }),
    ...(toolCalls && { tool_calls: toolCalls.map((call) => ({ type: "function", ...call })) }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  };
}
