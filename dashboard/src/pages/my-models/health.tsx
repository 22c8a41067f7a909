/** Health of a model, measured by other users' calls. */
import { Badge } from "@mantine/core";
import type { ModelHealthStatus } from "../../client/generated/graphql.js";

const LABELS: Readonly<Record<ModelHealthStatus, readonly [label: string, color: string]>> = {
  UNKNOWN: ["Too few calls", "gray"],
  HEALTHY: ["Healthy", "green"],
  UNRELIABLE: ["Unreliable", "red"],
};

export function Health({
  health: { status, requests, successRate },
}: {
  readonly health: { status: ModelHealthStatus; requests: number; successRate: number | null };
}) {
  const [label, color] = LABELS[status];
  const details = successRate === null ? "No calls yet." : `${Math.round(successRate * 100)}% of ${requests} calls succeeded.`;
  return (
    <Badge color={color} variant="light" tt="none" miw="max-content" title={details} data-health={status}>
      {label}
    </Badge>
  );
}
