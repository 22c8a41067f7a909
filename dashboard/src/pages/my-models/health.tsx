/** How others' calls of a model went, in a word. */
import { Badge } from "@mantine/core";
import type { ModelHealthStatus } from "../../client/generated/graphql.js";

const WORDS: Readonly<Record<ModelHealthStatus, readonly [word: string, color: string]>> = {
  UNKNOWN: ["too few calls to tell", "gray"],
  HEALTHY: ["healthy", "green"],
  UNRELIABLE: ["unreliable", "red"],
};

export function Health({
  health: { status, requests, successRate },
}: {
  readonly health: { status: ModelHealthStatus; requests: number; successRate: number | null };
}) {
  const [word, color] = WORDS[status];
  const said = successRate === null ? "It was not called." : `${Math.round(successRate * 100)}% of ${requests} calls were answered.`;
  return (
    <Badge color={color} variant="light" tt="none" miw="max-content" title={said} data-health={status}>
      {word}
    </Badge>
  );
}
