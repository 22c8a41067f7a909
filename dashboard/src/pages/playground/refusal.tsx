/** Error of a generation, with advice. */
import { Alert, Anchor, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { CombinedError } from "urql";
import { addressOf } from "../../shell/pages.js";
import { formatCredits } from "../../ui/credits.js";

const ADVICE: ReadonlyMap<string, ReactNode> = new Map<string, ReactNode>([
  ["INSUFFICIENT_BALANCE", <Balance key="balance" />],
  ["RATE_LIMITED", "Wait a moment, then try again."],
  ["UPSTREAM_ERROR", "The model’s upstream failed. Try again, or choose another model."],
  ["UPSTREAM_TIMEOUT", "The model’s upstream took too long. Try again, or choose another model."],
  ["CONTENT_BLOCKED", "Rephrase your prompt, then try again."],
]);

export interface RefusalProps {
  readonly error: CombinedError;
  readonly onClose?: () => void;
  /** A way on, such as a button that asks for less. */
  readonly action?: ReactNode;
}

export function Refusal({ error, onClose, action }: RefusalProps) {
  const [first] = error.graphQLErrors;
  const { code, param, details } = (first?.extensions ?? {}) as { readonly [name: string]: unknown };
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
        {(first && (costSentence(code, details) ?? sentence(first.message))) ??
          "Cannot reach the gateway, or the connection was lost. Your input is kept. Try again."}
        {advice && <> {advice}</>}
        {!advice && typeof param === "string" && " Correct it, then try again."}
      </Text>
      {action && <div style={{ marginTop: "var(--mantine-spacing-xs)" }}>{action}</div>}
    </Alert>
  );
}

function Balance() {
  return (
    <Anchor component={Link} to={addressOf("")} inherit underline="always">
      View your balance
    </Anchor>
  );
}

/** For example "This request may cost up to 1.33 credits, and you have 0.49 left." */
function costSentence(code: unknown, details: unknown): string | null {
  const { required, available } = (details ?? {}) as { readonly required?: unknown; readonly available?: unknown };
  if (code !== "INSUFFICIENT_BALANCE" || typeof required !== "string" || typeof available !== "string") return null;
  return `This request may cost up to ${formatCredits(required)} credits, and you have ${formatCredits(available)} left.`;
}

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);
