/** Why something was not generated, and what to do about it, where it was asked for. */
import { Alert, Anchor, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { CombinedError } from "urql";
import { addressOf } from "../../shell/pages.js";

const ADVICE: ReadonlyMap<string, ReactNode> = new Map<string, ReactNode>([
  [
    "INSUFFICIENT_BALANCE",
    <>
      Your balance does not cover what this may cost. Ask for less (a shorter longest answer holds less), choose a model that costs less, or
      see the{" "}
      <Anchor key="link" component={Link} to={addressOf("")} inherit underline="always">
        Overview
      </Anchor>{" "}
      for when credits are added.
    </>,
  ],
  ["RATE_LIMITED", "Wait a moment, then send it again."],
  ["UPSTREAM_ERROR", "The model's upstream did not do its part. Send it again, or choose another model."],
  ["UPSTREAM_TIMEOUT", "The model's upstream took too long. Send it again, or choose another model."],
  ["CONTENT_BLOCKED", "Say it in other words."],
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
      title={first ? "This was not done" : "No connection"}
      {...(onClose && { withCloseButton: true, onClose })}
    >
      <Text size="sm" className="any-wrap">
        {(first && sentence(first.message)) ??
          "The gateway cannot be reached, or the connection was lost. Nothing that you have typed is lost: send it again."}
        {advice && <> {advice}</>}
        {!advice && typeof param === "string" && " Change it, then send it again."}
      </Text>
    </Alert>
  );
}

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
