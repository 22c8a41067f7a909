/** Description list: label and value of each property. */
import { Table } from "@mantine/core";
import type { ReactNode } from "react";

export function Facts({ children }: { readonly children: ReactNode }) {
  return (
    <Table variant="vertical" withRowBorders={false} verticalSpacing={4}>
      <Table.Tbody>{children}</Table.Tbody>
    </Table>
  );
}

export function Fact({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <Table.Tr>
      <Table.Th
        w={{ base: 90, sm: 130 }}
        c="dimmed"
        fw={400}
        bg="transparent"
        px={0}
        style={{ verticalAlign: "top", whiteSpace: "nowrap" }}
      >
        {label}
      </Table.Th>
      <Table.Td className="any-wrap">{children}</Table.Td>
    </Table.Tr>
  );
}
