/** Short notes on a model: owner, restrictions and health. */
import { Badge, Group, Text } from "@mantine/core";
import type { ModelRowFragment } from "../../client/generated/graphql.js";
import { HEALTH } from "./filters.js";

export function Marks({ model }: { readonly model: ModelRowFragment }) {
  const { isDefault, isCommunity, isAgent, isPaidOnly, isPrivate, ownerHandle, flags, health } = model;
  const words = [
    ...(isDefault ? ["default for its type"] : []),
    ...(isAgent ? ["agent"] : []),
    ...(isCommunity ? [`by ${ownerHandle ?? "an account"}`] : []),
    ...(isPrivate ? ["private"] : []),
    ...(isPaidOnly ? ["purchased credits only"] : []),
    ...(flags.isAlpha ? ["alpha"] : []),
  ];
  return (
    <Group gap={6}>
      {words.length > 0 && (
        <Text size="xs" c="dimmed" className="any-wrap">
          {words.join(", ")}
        </Text>
      )}
      {health.status !== "UNKNOWN" && (
        <Badge size="xs" variant="light" color={health.status === "HEALTHY" ? "green" : "red"}>
          {HEALTH.get(health.status)}
        </Badge>
      )}
    </Group>
  );
}
