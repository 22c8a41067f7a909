/** Card with a key figure: label, value and a note below. */
import { Text } from "@mantine/core";
import type { ReactNode } from "react";

export function Figure({ label, value, children }: { readonly label: string; readonly value: ReactNode; readonly children?: ReactNode }) {
  return (
    <section className="card">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Text fw={650} fz="1.25rem" className="any-wrap">
        {value}
      </Text>
      <Text size="xs" c="dimmed" mih="1.2em">
        {children}
      </Text>
    </section>
  );
}
