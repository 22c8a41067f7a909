/** Error of a generation, with advice. */
import { Alert, Anchor, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { CombinedError } from "urql";
import { addressOf } from "../../shell/pages.js";

const ADVICE: ReadonlyMap<string, ReactNode> = new Map<string, ReactNode>([
  [
    "INSUFFICIENT_BALANCE",
    <>
      Lower the token limit or choose a cheaper model. The{" "}
      <Anchor key="link" component={Link} to={addressOf("")} inherit underline="always">
        Overview
      </Anchor>{" "}
      shows when free credits are refilled.
    </>,
  ],
  ["RATE_LIMITED", "Wait a moment, then try again."],
  ["UPSTREAM_ERROR", "The model’s upstream failed. Try again, or choose another model."],
  ["UPSTREAM_TIMEOUT", "The model’s upstream took too long. Try again, or choose another model."],
  ["CONTENT_BLOCKED", "Rephrase your prompt, then try again."],
]);

export function Refusal({ error, onClose }: { readonly error: CombinedError; readonly onClose?: () => void }) {
  const [first] = error.graphQLErrors;
  const { code, param } = (first?.extensions ?? {}) as { readonly code?: unknown; readonly param?: unknown };
  const advice = typeof code === "string" ? ADVICE.get(code) : undefined;
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      title={first ? "Request failed" : "No connection"}
      {...(onClose && { withCloseButton: true, onClose })}
    >
      <Text size="sm" className="any-wrap">
        {(first && sentence(first.message)) ?? "Cannot reach the gateway, or the connection was lost. Your input is kept. Try again."}
        {advice && <> {advice}</>}
        {!advice && typeof param === "string" && " Correct it, then try again."}
      </Text>
    </Alert>
  );
}

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
