import { Badge } from "@mantine/core";

export function StatusBadge({ status, size = "sm" }: { readonly status: number; readonly size?: "sm" | "lg" }) {
  return (
    <Badge size={size} radius="sm" variant="light" color={status < 400 ? "green" : status < 500 ? "orange" : "red"}>
      {status}
    </Badge>
  );
}
